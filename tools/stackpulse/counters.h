/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TOOL_COUNTERS_H
#define TOOL_COUNTERS_H

/* The counters of a recording, for people and as JSON. */

#include <stackpulse/stackpulse.h>

#include "json.h"

/* Says which samples are not in the file, reason by reason. */
void counters_tell_drops(const struct spulse_recording_summary *summary);
/* Every counter as a field of the open object. */
void counters_json(struct json *json, const struct spulse_recording_summary *summary);
/* The frames found without tables, by module, likewise. */
void counters_json_modules(struct json *json, struct spulse_recorder *recorder);

#endif
