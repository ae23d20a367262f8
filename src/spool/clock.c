/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "source.h"

/* Times of a source. A version 4 header pairs a monotonic with a wall time; version 3 has one
 * anchor in microseconds, which stands for the first sample. */

enum { NS_PER_SECOND = 1000000000 };

/* wall + (later - earlier), floored; false outside of 64-bit seconds. */
static bool wall_plus(const struct spulse_wall_time *wall, uint64_t later, uint64_t earlier,
		      struct spulse_wall_time *sum)
{
	__int128 ns = (__int128)wall->seconds * NS_PER_SECOND + wall->nanoseconds + later - earlier;
	__int128 seconds = ns / NS_PER_SECOND;
	int64_t nanos = ns % NS_PER_SECOND;

	if (nanos < 0) {
		nanos += NS_PER_SECOND;
		seconds--;
	}
	if (seconds < INT64_MIN || seconds > INT64_MAX)
		return false;
	*sum = (struct spulse_wall_time){ seconds, nanos };
	return true;
}

/* Microseconds since the epoch; false before it and beyond 64 bits. */
static bool wall_to_us(const struct spulse_wall_time *wall, uint64_t *us)
{
	if (wall->seconds < 0 || mul_overflows((uint64_t)wall->seconds, (uint64_t)1000000, us))
		return false;
	return !add_overflows(*us, wall->nanoseconds / 1000, us);
}

uint64_t spulse_source_start_timestamp_us(const struct spulse_source *source)
{
	uint64_t us;

	if (source->header.format < 4)
		return source->header.start;
	return source->header.has_origin && wall_to_us(&source->header.wall, &us) ? us : 0;
}

uint64_t spulse_source_sample_interval_us(const struct spulse_source *source)
{
	return source->header.format < 4 ? source->header.interval : source->header.interval / 1000;
}

uint64_t spulse_source_interval_ns(const struct spulse_source *source)
{
	uint64_t ns;

	if (source->header.format >= 4)
		return source->header.interval;
	return mul_overflows(source->header.interval, (uint64_t)1000, &ns) ? UINT64_MAX : ns;
}

int spulse_source_started_at(const struct spulse_source *source,
			     struct spulse_wall_time *wall_out)
{
	uint64_t start = source->header.start;

	if (source->header.format >= 4) {
		if (source->header.has_origin)
			*wall_out = source->header.wall;
		return source->header.has_origin;
	}
	if (start)
		*wall_out = (struct spulse_wall_time){ start / 1000000, start % 1000000 * 1000 };
	return start != 0;
}

int spulse_source_clock_origin(const struct spulse_source *source, uint64_t *monotonic_ns_out,
			       struct spulse_wall_time *wall_out)
{
	if (!source->header.has_origin)
		return 0;
	*monotonic_ns_out = source->header.monotonic_ns;
	*wall_out = source->header.wall;
	return 1;
}

void spulse_source_raw_header(const struct spulse_source *source, uint64_t *start_out,
			      uint64_t *interval_out)
{
	*start_out = source->header.start;
	*interval_out = source->header.interval;
}

/* Since the first written sample; 0 for what is earlier. */
static uint64_t since_first(const struct spulse_source *source, const struct spulse_sample *sample)
{
	if (!source->has_first_sample || sample->timestamp_ns < source->first_sample_ns)
		return 0;
	return sample->timestamp_ns - source->first_sample_ns;
}

int spulse_source_wall_time(const struct spulse_source *source, const struct spulse_sample *sample,
			    struct spulse_wall_time *wall_out, struct spulse_error **err)
{
	struct spulse_wall_time anchor;

	if (!spulse_source_started_at(source, &anchor))
		return 0;
	if (source->header.format < 4)
		return wall_plus(&anchor, since_first(source, sample), 0, wall_out);
	if (!wall_plus(&anchor, sample->timestamp_ns, source->header.monotonic_ns, wall_out))
		return err_set(err, SPULSE_ERROR_INVALID_INPUT,
			       "the sample's wall time is outside of 64-bit seconds");
	return 1;
}

int spulse_source_timestamp_us(const struct spulse_source *source,
			       const struct spulse_sample *sample, uint64_t *us_out)
{
	struct spulse_wall_time wall;
	uint64_t us;

	if (source->header.format >= 4) {
		if (!source->header.has_origin ||
		    !wall_plus(&source->header.wall, sample->timestamp_ns,
			       source->header.monotonic_ns, &wall) ||
		    !wall_to_us(&wall, &us))
			return 0;
		*us_out = us;
		return 1;
	}
	if (!source->header.start)
		return 0;
	if (add_overflows(source->header.start, since_first(source, sample) / 1000, us_out))
		*us_out = UINT64_MAX;
	return 1;
}
