/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* A spool from a perf.data file: the recorder, fed from the file instead of the rings. */
#include "outfile.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "options.h"

void spulse_import_options_init(struct spulse_import_options *options, size_t size)
{
	options_clear(options, size);
}

static int resolve(const struct spulse_import_options *given,
		   struct spulse_recorder_options *out, struct spulse_error **err)
{
	struct spulse_import_options known = { .size = sizeof(known) };
	struct spulse_recorder_options options = {
		.size = sizeof(options),
		.include_kernel = true,
		.follow = SPULSE_FOLLOW_NEW,
	};

	int r = given ? options_read(&known, sizeof(known), given, "import options", err) : 0;

	if (r < 0)
		return r;
	options.format = known.format;
	options.annotate = known.annotate;
	return options_resolve(out, &options, err);
}

static void fill_header(const struct spulse_recorder_options *options,
			const struct perf_file_info *info, struct spulse_spool_header *header)
{
	uint64_t interval = info->frequency ? UINT64_C(1000000000) / info->frequency : 0;

	*header = (struct spulse_spool_header){ .size = sizeof(*header),
						.format = options->format };
	if (options->format == SPULSE_SPOOL_FORMAT_3) {
		header->interval = interval / 1000;
		if (info->has_clock)
			header->start_timestamp_us =
				(info->clock_wall_ns + (info->first_ns - info->clock_ns)) / 1000;
		return;
	}
	header->interval = interval;
	header->has_clock_origin = info->has_clock;
	header->monotonic_ns = info->clock_ns;
	header->wall.seconds = info->clock_wall_ns / 1000000000;
	header->wall.nanoseconds = info->clock_wall_ns % 1000000000;
}

static int put(struct spulse_recorder *rec, const char *key, const char *value,
	       struct spulse_error **err)
{
	if (!rec->options.annotate || !value || !value[0])
		return 0;
	return spool_writer_annotate(rec->writer, -1, key, value, strlen(value), err);
}

static int describe(struct spulse_recorder *rec, const struct perf_file_info *info,
		    struct spulse_error **err)
{
	char cpus[16] = "";
	int r;

	if (info->cpus_online)
		snprintf(cpus, sizeof(cpus), "%" PRIu32, info->cpus_online);
	r = put(rec, "host", info->hostname, err);
	if (r == 0)
		r = put(rec, "kernel", info->kernel, err);
	if (r == 0)
		r = put(rec, "cpus", cpus, err);
	return r < 0 ? r : put(rec, "recorded-by", info->cmdline, err);
}

/* Each pass shows more of the file; one without any event is its end. */
static int take_all(struct spulse_recorder *rec, struct spulse_error **err)
{
	int r;

	do {
		rec->merge.seen = false;
		r = merge_pass(&rec->merge, MERGE_ALL, lifecycle_event, rec, err);
	} while (r == 0 && rec->merge.seen);
	return r;
}

static int import(struct spulse_recorder *rec, const struct perf_file_info *info,
		  struct rec_target *target, struct spulse_recording_summary *summary,
		  struct spulse_error **err)
{
	int r = describe(rec, info, err);

	rec->user_chains = info->callchain_only;
	rec->imported = true;
	rec->chain_limit = info->chain_limit;
	if (r == 0)
		r = take_all(rec, err);
	rec->summary.input_cut = info->truncated;
	rec->summary.input_unknown_records = info->skipped;
	if (r == 0)
		r = spulse_recorder_finish(rec, summary, err);
	return r < 0 ? r : output_publish(target, err);
}

int spulse_import_perf_data(const char *input, const char *output,
			    const struct spulse_import_options *opts,
			    struct spulse_recording_summary *summary_out,
			    struct spulse_error **err)
{
	struct rec_target target = { .path = output, .fd = -1, .file = -1 };
	struct spulse_recorder_options options;
	struct perf_source *source = NULL;
	struct spulse_recorder *rec = NULL;
	const struct perf_file_info *info;
	struct spulse_error *why = NULL;
	int r;

	if (!input || !output)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "no file to import, or no output");
	r = resolve(opts, &options, &why);
	if (r == 0)
		r = output_check(&target, &why);
	if (r == 0)
		r = perf_file_open(input, &source, &info, &why);
	if (r == 0) {
		fill_header(&options, info, &target.header);
		r = recorder_from_source(&options, source, &target, &rec, &why);
		if (r < 0)
			source->ops->free(source);
	}
	if (r == 0)
		r = import(rec, info, &target, summary_out, &why);
	output_release(&target);
	spulse_recorder_free(rec);
	if (r < 0)
		r = err_repeat(err, why);
	spulse_error_free(why);
	return r;
}
