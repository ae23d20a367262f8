/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef STACKPULSE_ERROR_H
#define STACKPULSE_ERROR_H

#include <stackpulse/common.h>

/**
 * @file
 * Errors. A fallible call returns 0 (or a count, or yes/no) when it worked and `-kind` when it
 * did not. Its last parameter takes the details: pass NULL to ignore them, or the address of a
 * pointer that is NULL; free what it receives with spulse_error_free(). An error object belongs
 * to whoever received it, is never changed after that and may be read from any thread.
 *
 * The comment of a call names the kinds that are particular to it. Besides, every call that takes
 * an error may give NO_MEMORY, and IO for what else the operating system refuses; a call that takes
 * a struct with a size gives UNSUPPORTED when a field is set that this version does not know.
 * A call that fails leaves its results as they were, unless its comment says more.
 */

/** What went wrong. Values are stable; new kinds may be added. */
enum spulse_error_kind {
	/** Nothing went wrong. */
	SPULSE_OK = 0,
	/** The operating system reported an error that fits no other kind. */
	SPULSE_ERROR_IO = 1,
	/** An argument or option is outside of what the call accepts. */
	SPULSE_ERROR_INVALID_INPUT = 2,
	/** The operating system refused access. */
	SPULSE_ERROR_PERMISSION = 3,
	/** The process does not exist or ended. */
	SPULSE_ERROR_TARGET_GONE = 4,
	/** The sample rate is above the kernel's limit; see spulse_error_frequency_limit(). */
	SPULSE_ERROR_FREQUENCY_LIMIT = 5,
	/** A spool's content breaks the format. */
	SPULSE_ERROR_CORRUPT_SPOOL = 6,
	/** The kernel, file system or build lacks what the call needs. */
	SPULSE_ERROR_UNSUPPORTED = 7,
	/** A native symbol backend failed. */
	SPULSE_ERROR_NATIVE_SYMBOLIZER = 8,
	/** A program could not be started. */
	SPULSE_ERROR_PROCESS_LAUNCH = 9,
	/** Memory ran out. */
	SPULSE_ERROR_NO_MEMORY = 10,
};

/** Where in a spool an error was found. */
struct spulse_spool_position {
	/** Byte offset of the record, or where the file is not as it was, from the file's start. */
	uint64_t offset;
	/** The record's tag; -1 for the file's header, and where the record was not read yet. */
	int tag;
};

SPULSE_BEGIN_DECLS

struct spulse_error;

/** Kind of @p error; SPULSE_OK for NULL. */
SPULSE_API enum spulse_error_kind spulse_error_kind(const struct spulse_error *error);
/** Name of a kind, for example "corrupt spool"; "unknown" for a value that is none. */
SPULSE_API const char *spulse_error_kind_name(enum spulse_error_kind kind);
/** The operating system's error number behind @p error, 0 without one. */
SPULSE_API int spulse_error_errno(const struct spulse_error *error);
/** One line of text for people, without a line end. Lives as long as @p error. */
SPULSE_API const char *spulse_error_message(const struct spulse_error *error);
/** The file that @p error is about, or NULL. Lives as long as @p error. */
SPULSE_API const char *spulse_error_path(const struct spulse_error *error);
/** The error that led to this one, or NULL. Lives as long as @p error. */
SPULSE_API const struct spulse_error *spulse_error_cause(const struct spulse_error *error);
/** A second failure, met while cleaning up after the first, or NULL. Lives as long as @p error. */
SPULSE_API const struct spulse_error *spulse_error_cleanup(const struct spulse_error *error);
/** Sample rates of a FREQUENCY_LIMIT error in Hz. Returns false and sets nothing for others. */
SPULSE_API bool spulse_error_frequency_limit(const struct spulse_error *error,
					     uint64_t *requested_out, uint64_t *maximum_out);
/** Position of a CORRUPT_SPOOL error. Returns false and sets nothing when it has none. */
SPULSE_API bool spulse_error_spool_position(const struct spulse_error *error,
					    struct spulse_spool_position *position_out);
/** The library's own domain of a spool that could not be written; the code is the offset in it. */
#define SPULSE_ERROR_DOMAIN_OUTPUT "stackpulse output"

/** Name space of spulse_error_code(), as given to spulse_error_new(), or NULL. */
SPULSE_API const char *spulse_error_domain(const struct spulse_error *error);
/** Number that the creator of the error chose, 0 without one. */
SPULSE_API int64_t spulse_error_code(const struct spulse_error *error);

/**
 * Makes an error, for native backends and outputs. Never returns NULL: when memory runs out the
 * result is a static NO_MEMORY error, which may be freed like any other.
 *
 * @param errnum  an errno value or 0
 * @param path    file that the error is about, or NULL; copied
 * @param domain  name space of @p code, or NULL; copied
 */
SPULSE_API struct spulse_error *spulse_error_new(enum spulse_error_kind kind, int errnum,
						 const char *path, const char *domain,
						 int64_t code, const char *format, ...)
	SPULSE_PRINTF(6, 7);

/** Frees @p error with its causes; does nothing for NULL. */
SPULSE_API void spulse_error_free(struct spulse_error *error);
SPULSE_DEFINE_CLEANUP(error)

SPULSE_END_DECLS

#endif
