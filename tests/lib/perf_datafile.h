/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TESTS_PERF_DATAFILE_H
#define TESTS_PERF_DATAFILE_H

#include <linux/perf_event.h>

#include "perf_records.h"

/* Builds perf.data files, with a header or as a pipe has them. */
struct perf_datafile {
	bool pipe;
	struct perf_records attrs; /* of a header: attr, then the section of its ids */
	struct perf_records ids;   /* of all attrs */
	struct perf_records data;  /* records; of a pipe: everything behind its magic */
	struct perf_records features, feature_table;
	uint64_t feature_bits[4];
};

void perf_datafile_init(struct perf_datafile *f, bool pipe);
void perf_datafile_release(struct perf_datafile *f);
void perf_datafile_attr(struct perf_datafile *f, const struct perf_event_attr *attr,
			const uint64_t *ids, size_t count);
/* A cpu-clock event whose records look as a perf_records writer makes them. */
void perf_datafile_plain_attr(struct perf_datafile *f, const struct perf_layout *layout);
void perf_datafile_records(struct perf_datafile *f, const void *bytes, size_t len);
void perf_datafile_round(struct perf_datafile *f);
/* In ascending order of their numbers. */
void perf_datafile_feature(struct perf_datafile *f, unsigned int feature, const void *bytes,
			   size_t len);
void perf_datafile_string_feature(struct perf_datafile *f, unsigned int feature, const char *s);
/* The whole file; free(). */
uint8_t *perf_datafile_take(struct perf_datafile *f, size_t *len);

#endif
