/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TOOL_CLI_VALUE_H
#define TOOL_CLI_VALUE_H

/* The values of options: text in, checked value out. */

#include "cli.h"

/* Stores the value of text; false with what is wrong in why. */
bool cli_value_set(const struct cli_option *option, const char *text, char *why, size_t why_size);

#endif
