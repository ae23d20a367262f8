/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * symbolize: raw frames in, named frames out: the order of resolution, caches, invalidation,
 * kernel symbols; in native/ the default backend, the only place that knows DWARF and demangling.
 * Owns resolved frames and their strings. Never needs the target alive, never writes a file.
 */
#ifndef SPULSE_SYMBOLIZE_ROOM_H
#define SPULSE_SYMBOLIZE_ROOM_H

#include <stackpulse/native.h>
#include <stackpulse/profile.h>
#include <stackpulse/symbolize.h>

#endif
