/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_BASE_LOGGING_H
#define SPULSE_BASE_LOGGING_H

#include <stackpulse/log.h>

bool log_enabled(enum spulse_log_level level);
void log_warning(const char *format, ...) SPULSE_PRINTF(1, 2);
void log_debug(const char *format, ...) SPULSE_PRINTF(1, 2);

#endif
