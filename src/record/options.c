/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "options.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "../base/base.h"
#include "../perf/perf.h"

#include <stackpulse/spool.h>

enum {
	DEFAULT_FREQUENCY = 1000,
	DEFAULT_STACK = 32 * 1024,
	/* Of all rings together, unless their size is asked for. */
	DEFAULT_RINGS = 32 * 1024 * 1024,
	LEAST_DEFAULT_STACKS = 8,
	ENOUGH_DEFAULT_STACKS = 32,
	RING_PER_SECOND = 4, /* a ring lasts for the fourth part of one */
};

static const int64_t default_publish_ns = 500 * 1000000;
static const char rate_path[] = "/proc/sys/kernel/perf_event_max_sample_rate";

int spulse_max_sample_rate(uint32_t *hz_out, struct spulse_error **err)
{
	int64_t value;
	int r = read_file_number(rate_path, &value);

	if (r < 0)
		return err_io(err, -r, rate_path, "cannot read %s", rate_path);
	if (value <= 0 || value > UINT32_MAX)
		return err_file(err, SPULSE_ERROR_IO, EBADMSG, rate_path,
				"%s holds no usable rate", rate_path);
	*hz_out = value;
	return 0;
}

void spulse_recorder_options_init(struct spulse_recorder_options *options, size_t size)
{
	options_clear(options, size);
}

static int invalid(struct spulse_error **err, const char *what)
{
	return err_set(err, SPULSE_ERROR_INVALID_INPUT, "%s", what);
}

static int resolve_frequency(struct spulse_recorder_options *o, struct spulse_error **err)
{
	if (o->frequency && o->frequency_maximum)
		return invalid(err, "a frequency and the maximum frequency exclude each other");
	if (o->frequency_maximum)
		return spulse_max_sample_rate(&o->frequency, err);
	if (!o->frequency)
		o->frequency = DEFAULT_FREQUENCY;
	return 0;
}

static int resolve_stack(struct spulse_recorder_options *o, struct spulse_error **err)
{
	if (o->stack_size > SPULSE_MAX_SAMPLE_USER_STACK)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT,
			       "a stack copy of %u bytes is above the kernel's limit of %u",
			       o->stack_size, SPULSE_MAX_SAMPLE_USER_STACK);
	if (!o->stack_size)
		o->stack_size = DEFAULT_STACK;
	o->stack_size = (o->stack_size + 7) & ~7u;
	return 0;
}

static int check_choices(struct spulse_recorder_options *o, struct spulse_error **err)
{
	if (o->follow > SPULSE_FOLLOW_DESCENDANTS)
		return invalid(err, "unknown value of the option follow");
	if (o->sampling_event > SPULSE_EVENT_CPU_CLOCK)
		return invalid(err, "unknown value of the option sampling_event");
	if (o->python > SPULSE_PYTHON_PERFMAP)
		return invalid(err, "unknown value of the option python");
	if (o->unused[0] || o->unused[1])
		return err_set(err, SPULSE_ERROR_UNSUPPORTED, "an option that is not known is set");
	if (!o->format)
		o->format = SPULSE_SPOOL_FORMAT_4;
	if (o->format != SPULSE_SPOOL_FORMAT_3 && o->format != SPULSE_SPOOL_FORMAT_4)
		return invalid(err, "unknown spool format");
	if (o->format != SPULSE_SPOOL_FORMAT_3 && (o->start_timestamp_us || o->sample_interval_us))
		return invalid(err, "start_timestamp_us and sample_interval_us belong to "
				    "format 3 only");
	if (o->publish_interval_ns < 0)
		return invalid(err, "a negative publish interval");
	if (!o->publish_interval_ns)
		o->publish_interval_ns = default_publish_ns;
	return 0;
}

int options_resolve(struct spulse_recorder_options *out,
		    const struct spulse_recorder_options *given, struct spulse_error **err)
{
	int r = 0;

	*out = (struct spulse_recorder_options){ .size = sizeof(*out) };
	if (given)
		r = options_read(out, sizeof(*out), given, "recorder options", err);
	if (r == 0)
		r = check_choices(out, err);
	if (r == 0)
		r = resolve_stack(out, err);
	if (r == 0)
		r = resolve_frequency(out, err);
	return r;
}

/*
 * Samples that one ring is to hold unless asked: those of a CPU that is always busy, as long as a
 * recorder may wait for its own turn on a loaded machine. More would only cost time, as the kernel
 * clears and maps every page. Context switches keep to no rate.
 */
static uint64_t default_stacks(const struct spulse_recorder_options *options)
{
	if (options->off_cpu)
		return UINT32_MAX;
	return MAX(options->frequency / RING_PER_SECOND, ENOUGH_DEFAULT_STACKS);
}

int options_ring_stacks(const struct spulse_recorder_options *options, size_t cpus,
			uint32_t *stacks_out, struct spulse_error **err)
{
	size_t page = sysconf(_SC_PAGESIZE);
	uint64_t per_stack = MAX((uint64_t)options->stack_size, page), minimum, wanted,
		 share = page;
	uint32_t stacks = options->ring_buffer_stacks;

	if (!stacks) {
		wanted = default_stacks(options) * per_stack;
		while (share * 2 * cpus <= DEFAULT_RINGS && share < wanted)
			share *= 2;
		stacks = MAX(share / per_stack, LEAST_DEFAULT_STACKS);
	}
	*stacks_out = stacks;
	return perf_ring_size(options->stack_size, stacks, page, cpus, &minimum, &wanted, err);
}
