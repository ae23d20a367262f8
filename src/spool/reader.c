/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "reader.h"

int reader_close(struct decoder *d, int last, struct spulse_error **err)
{
	if (last < 0)
		return last;
	if (last == DECODE_CUT) {
		d->source->recovered = true;
		log_warning("%s: the last record, at offset %llu, is cut off and was left out",
			    d->source->path, (unsigned long long)decode_offset(d));
	}
	return source_settle(d->source) ? 0 : err_no_memory(err);
}
