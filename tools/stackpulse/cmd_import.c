/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <inttypes.h>

#include "cli.h"
#include "counters.h"
#include "output.h"
#include "tool.h"

/* What of the file is not in the recording. */
static void tell_rest(const char *from, const struct spulse_recording_summary *summary)
{
	counters_tell_drops(summary);
	if (summary->input_other_samples)
		tool_message("%" PRIu64 " samples of further events were left out",
			     summary->input_other_samples);
	if (summary->input_unknown_records)
		tool_message("%" PRIu64 " records belong to no event that the file describes",
			     summary->input_unknown_records);
	if (summary->input_cut)
		tool_message("%s ends in the middle: it was read up to there", from);
}

static int import(const char *from, const char *to, bool version_3)
{
	const struct spulse_import_options options = {
		.size = sizeof(options),
		.format = version_3 ? SPULSE_SPOOL_FORMAT_3 : SPULSE_SPOOL_FORMAT_4,
		.annotate = 1,
	};
	struct spulse_recording_summary summary = {.size = sizeof(summary)};
	struct spulse_error *err = NULL;

	if (out_would_replace(to, from))
		return TOOL_FAILED;
	if (spulse_import_perf_data(from, to, &options, &summary, &err) < 0)
		return tool_fail(err);
	tool_message("samples=%" PRIu64 " lost=%" PRIu64 " in %s; %" PRIu64
		     " of them have a cut stack",
		     summary.samples, summary.lost_events, to, summary.truncated_frame_markers);
	tell_rest(from, &summary);
	return TOOL_DONE;
}

int cmd_import(int argc, char **argv)
{
	static const char *const formats[] = {"4", "3", NULL};
	const char *to = TOOL_DEFAULT_SPOOL;
	int format = 0;
	const struct cli_option options[] = {
		{'o', "output", CLI_STRING, &to, "FILE",
		 .help = "Where to write: stackpulse.spool unless given."},
		{0, "format", CLI_CHOICE, &format, "VERSION",
		 .help = "4 (the default), or 3 for readers of stackpulse 0.10.",
		 .choices = formats},
	};
	const struct cli_group groups[] = {CLI_GROUP("Options", options)};
	const struct cli_spec spec = {
		.command = "import",
		.usage = "[-o FILE] [--format VERSION] [PERF.DATA]",
		.about = "Makes a recording from what \"perf record\" wrote (also piped or "
			 "compressed) and unwinds its user stacks. PERF.DATA is perf.data unless "
			 "given; \"-\" is the standard input.",
		.groups = groups,
		.group_count = 1,
		.maximum_arguments = 1,
	};
	int status = cli_parse(&spec, &argc, &argv);

	if (status != CLI_GO_ON)
		return status;
	return import(argc ? argv[0] : "perf.data", to, format != 0);
}
