/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "logging.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static spulse_log_fn log_fn;
static void *log_data;
static atomic_int log_level;

void spulse_log_set(spulse_log_fn fn, void *data, enum spulse_log_level level)
{
	pthread_mutex_lock(&log_lock);
	log_fn = fn;
	log_data = data;
	atomic_store(&log_level, fn ? (int)level : SPULSE_LOG_NONE);
	pthread_mutex_unlock(&log_lock);
}

bool log_enabled(enum spulse_log_level level)
{
	return (int)level <= atomic_load_explicit(&log_level, memory_order_relaxed);
}

static void log_emit(enum spulse_log_level level, const char *format, va_list args)
{
	char text[1024];
	spulse_log_fn fn;
	void *data;

	pthread_mutex_lock(&log_lock);
	fn = log_fn;
	data = log_data;
	pthread_mutex_unlock(&log_lock);
	if (!fn)
		return;
	vsnprintf(text, sizeof(text), format, args);
	fn(data, level, text);
}

void log_warning(const char *format, ...)
{
	va_list args;

	if (!log_enabled(SPULSE_LOG_WARNING))
		return;
	va_start(args, format);
	log_emit(SPULSE_LOG_WARNING, format, args);
	va_end(args);
}

void log_debug(const char *format, ...)
{
	va_list args;

	if (!log_enabled(SPULSE_LOG_DEBUG))
		return;
	va_start(args, format);
	log_emit(SPULSE_LOG_DEBUG, format, args);
	va_end(args);
}
