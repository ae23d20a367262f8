/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef STACKPULSE_LOG_H
#define STACKPULSE_LOG_H

#include <stackpulse/common.h>

/** How important a message is. */
enum spulse_log_level {
	/** No messages. */
	SPULSE_LOG_NONE = 0,
	/** Something is missing from the result. */
	SPULSE_LOG_WARNING = 1,
	/** How the library decides. */
	SPULSE_LOG_DEBUG = 2,
};

SPULSE_BEGIN_DECLS

/**
 * Receives one message without a line end. May be called from any thread that uses a handle, and
 * must not call the library. @p message lives during the call only.
 */
typedef void (*spulse_log_fn)(void *data, enum spulse_log_level level, const char *message);

/**
 * Sends messages up to @p level to @p fn from now on; NULL silences the library, which is how it
 * starts. Process-wide; a call that is under way in another thread may still use the old function.
 */
SPULSE_API void spulse_log_set(spulse_log_fn fn, void *data, enum spulse_log_level level);

SPULSE_END_DECLS

#endif
