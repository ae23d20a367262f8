/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * base: containers, hashing, byte strings, varints, errors and logging for every other room.
 * Owns nothing but memory. Never knows Linux, a file format or another room.
 * This header includes the whole room; including a single part is allowed too.
 */
#ifndef SPULSE_BASE_H
#define SPULSE_BASE_H

#include "arena.h"
#include "cleanup.h"
#include "errors.h"
#include "hash.h"
#include "intern.h"
#include "io.h"
#include "logging.h"
#include "places.h"
#include "strbuf.h"
#include "util.h"
#include "varint.h"
#include "vec.h"

#endif
