/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TARGETS_PARTLY_H
#define TARGETS_PARTLY_H

unsigned long partly_shown(unsigned long x);
unsigned long partly_entry(unsigned long x);

#endif
