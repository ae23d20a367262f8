/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_UNWIND_EPILOGUE_H
#define SPULSE_UNWIND_EPILOGUE_H

#include "guess.h"

/*
 * Follows x86-64 code from the window's address to the function's return and adds up what it does
 * to the stack: a rule of kind RULE_SP or RULE_FP, or 0 when the way cannot be told.
 */
rule_t epilogue_rule(const struct code_window *window, bool exact);

#endif
