/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef STACKPULSE_COMMON_H
#define STACKPULSE_COMMON_H

/**
 * @file
 * What every public header needs: symbol visibility, scope cleanup and option structs.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** Marks a function that the shared library exports. */
#define SPULSE_API __attribute__((visibility("default")))

/** Marks a function that will go away; @p msg names its replacement. */
#define SPULSE_DEPRECATED(msg) __attribute__((deprecated(msg)))

/** Lets the compiler check a printf-like function's arguments. */
#define SPULSE_PRINTF(format_index, first_argument) \
	__attribute__((format(printf, format_index, first_argument)))

/**
 * Declares a pointer to `struct spulse_<name>` that is freed when it leaves the scope:
 * `SPULSE_CLEANUP(recorder) rec = NULL;`. Declare an owner before what borrows from it.
 */
#define SPULSE_CLEANUP(name) \
	__attribute__((cleanup(spulse_##name##_freep))) struct spulse_##name *

/** Defines the helper that SPULSE_CLEANUP() needs for one handle type. */
#define SPULSE_DEFINE_CLEANUP(name) \
	static inline void spulse_##name##_freep(struct spulse_##name **handle) \
	{ \
		spulse_##name##_free(*handle); \
	}

/**
 * Makes an option struct in place: `SPULSE_OPTS(recorder_options, .frequency = 99)`. Fields that
 * are not named are zero, which always means "the default". At least one field is needed.
 */
#define SPULSE_OPTS(name, ...) \
	(&(const struct spulse_##name){ .size = sizeof(struct spulse_##name), __VA_ARGS__ })

#ifdef __cplusplus
#define SPULSE_BEGIN_DECLS extern "C" {
#define SPULSE_END_DECLS }
#else
#define SPULSE_BEGIN_DECLS
#define SPULSE_END_DECLS
#endif

SPULSE_BEGIN_DECLS

struct spulse_error;

/** Frees an array that a call handed to its caller (the call's documentation says so). */
SPULSE_API void spulse_array_free(void *array);

SPULSE_END_DECLS

#endif
