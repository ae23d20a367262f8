/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_BASE_ERRORS_H
#define SPULSE_BASE_ERRORS_H

#include <stdarg.h>

#include <stackpulse/error.h>

/*
 * Makers of error objects. Each stores the error in *err (unless err is NULL) and returns -kind,
 * so that a caller writes `return err_io(err, errno, path, "cannot open");`.
 */

int err_set(struct spulse_error **err, enum spulse_error_kind kind, const char *format, ...)
	SPULSE_PRINTF(3, 4);

/* With a file and an errno value; ": strerror" is appended when errnum is not 0. */
int err_file(struct spulse_error **err, enum spulse_error_kind kind, int errnum, const char *path,
	     const char *format, ...) SPULSE_PRINTF(5, 6);

/* As err_file(), the kind chosen by the errno value: see err_kind_of_errno(). */
int err_io(struct spulse_error **err, int errnum, const char *path, const char *format, ...)
	SPULSE_PRINTF(4, 5);

int err_no_memory(struct spulse_error **err);

int err_corrupt(struct spulse_error **err, const char *path, int tag, uint64_t offset,
		const char *format, ...) SPULSE_PRINTF(5, 6);

int err_frequency(struct spulse_error **err, uint64_t requested, uint64_t maximum);

/* EACCES/EPERM: PERMISSION, ENOMEM: NO_MEMORY, EINVAL: INVALID_INPUT, not supported: UNSUPPORTED,
 * anything else: IO. */
enum spulse_error_kind err_kind_of_errno(int errnum);

/*
 * Puts context before an error's message ("reading maps of 12: ..."), keeping its kind and errno;
 * the original becomes the cause. Returns -kind of *err. Does nothing when err is NULL.
 */
int err_prefix(struct spulse_error **err, const char *format, ...) SPULSE_PRINTF(2, 3);

/*
 * Changes the kind of a fresh error that nobody has seen yet; returns -kind. That memory ran out
 * stays what it is.
 */
int err_retype(struct spulse_error **err, enum spulse_error_kind kind);

/*
 * Says of a fresh CORRUPT_SPOOL error which record it was met at, and leaves others alone; `r` is
 * the failed call's result, and is returned.
 */
int err_locate(struct spulse_error **err, int r, int tag, uint64_t offset);

/* Attaches a second failure to *err (taken over; freed when err is NULL). */
void err_attach_cleanup(struct spulse_error **err, struct spulse_error *second);

/* A second reference to an error that is kept (a latched one). */
struct spulse_error *err_ref(struct spulse_error *error);

/* Stores another reference to `error` in *err; returns -kind. */
int err_repeat(struct spulse_error **err, struct spulse_error *error);

#endif
