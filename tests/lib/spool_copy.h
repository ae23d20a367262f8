/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TESTS_LIB_SPOOL_COPY_H
#define TESTS_LIB_SPOOL_COPY_H

#include <stackpulse/spool.h>

/* The header that a source was read with. */
struct spulse_spool_header spool_copy_header(const struct spulse_source *source);
/*
 * Gives every event of a spool (modules, retirements, runtimes, samples with their frames) to a
 * writer, in file order; frames, nodes and threads are the writer's own business.
 */
int spool_copy_events(const struct spulse_replay *replay, struct spulse_spool_writer *writer,
		      struct spulse_error **err);
/* The same without annotations; other modules have other ids then. */
int spool_copy_plain_events(const struct spulse_replay *replay, struct spulse_spool_writer *writer,
			    struct spulse_error **err);

#endif
