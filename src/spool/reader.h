/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SPOOL_READER_H
#define SPULSE_SPOOL_READER_H

#include "decode.h"

/* What Snapshot and Replay do alike. */

/* Notes the first sample of a source. */
static inline void note_first_sample(struct spulse_source *source, uint64_t ns)
{
	if (!source->has_first_sample) {
		source->has_first_sample = true;
		source->first_sample_ns = ns;
	}
}

/* Ends a whole reading with the decoder's last result: the tail that was cut off is reported. */
int reader_close(struct decoder *d, int last, struct spulse_error **err);

#endif
