/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_RECORD_OPTIONS_H
#define SPULSE_RECORD_OPTIONS_H

#include <stackpulse/record.h>

/*
 * Fills *out from the caller's options (NULL: defaults) and checks them, before any target is
 * touched. frequency is resolved, stack_size rounded, format is a version; ring_buffer_stacks
 * stays as it was asked for.
 */
int options_resolve(struct spulse_recorder_options *out,
		    const struct spulse_recorder_options *given, struct spulse_error **err);
/*
 * Stacks per ring for `cpus` rings: what was asked for, or what the default memory for all
 * rings together permits. The size is checked against the limits.
 */
int options_ring_stacks(const struct spulse_recorder_options *options, size_t cpus,
			uint32_t *stacks_out, struct spulse_error **err);

#endif
