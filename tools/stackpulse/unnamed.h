/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TOOL_UNNAMED_H
#define TOOL_UNNAMED_H

/* What a reader should know of code that has no name, and what gives it one. */

#include "calltree.h"
#include "output.h"

/* Prints nothing when hardly any sample touches such code. */
void unnamed_tell(struct out *out, const struct calltree *tree);

#endif
