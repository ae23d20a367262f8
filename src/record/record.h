/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * record: the recorder: perf records in, a spool out: order, processes, modules, stacks, losses.
 * Owns recorders and all policy of what a record means. Never opens an event or a file of symbols
 * itself, never names a frame. Outside of it only the public header is used.
 */
#ifndef SPULSE_RECORD_ROOM_H
#define SPULSE_RECORD_ROOM_H

#include <stackpulse/record.h>

#endif
