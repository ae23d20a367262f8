/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "spool_seed.h"

#include <stdlib.h>

#include "spool_model.h"
#include "spool_output.h"

uint8_t *spool_seed(unsigned int i, size_t *len)
{
	struct spool_output output = {.rng.state = i};
	SPULSE_CLEANUP(spool_writer) writer = NULL;
	struct spool_model model;

	spool_model_init(&model, i + 1, i & 1 ? SPULSE_SPOOL_FORMAT_3 : SPULSE_SPOOL_FORMAT_4);
	if (spulse_spool_writer_new(&spool_output_functions, &output, &model.header, &writer,
				    NULL) < 0)
		abort();
	for (unsigned int step = 0; step < 2 + i * 4; step++)
		spool_model_step(&model, writer);
	if (spulse_spool_writer_finish(writer, NULL) < 0)
		abort();
	spool_model_release(&model);
	*len = output.bytes.len;
	return (uint8_t *)output.bytes.data;
}
