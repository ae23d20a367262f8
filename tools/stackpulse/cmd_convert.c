/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>

#include "cli.h"
#include "output.h"
#include "tool.h"

static ssize_t write_out(void *data, const void *bytes, size_t len)
{
	struct out *out = data;

	out_write(out, bytes, len);
	/* Why is told when the output is closed. */
	return out_stopped(out) ? -EIO : (ssize_t)len;
}

/* What the target cannot hold, a line for each kind. */
static void say_losses(const struct spulse_convert_report *report)
{
	if (report->jit_modules)
		tool_message("version 3 has no JIT modules: %" PRIu64 " became plain modules and "
			     "%" PRIu64 " names were left out",
			     report->jit_modules, report->jit_symbols);
	if (report->paths_changed)
		tool_message("version 3 holds UTF-8 paths only: in %" PRIu64 " paths U+FFFD stands "
			     "for other bytes",
			     report->paths_changed);
	if (report->time_reduced)
		tool_message("version 3 has no clock origin: wall times are kept to the "
			     "microsecond, from the first sample on");
	if (report->time_lost)
		tool_message("version 3 has no wall times up to 1970 or beyond 64 bits of "
			     "microseconds: the wall times were left out");
	if (report->interval_rounded)
		tool_message("version 3 has whole microseconds: the sampling interval was rounded "
			     "down");
	if (report->interval_limited)
		tool_message("version 4 has 64 bits of nanoseconds: the sampling interval is "
			     "longer, and became %" PRIu64 " ns", UINT64_MAX);
}

static int convert(const char *from, const char *to, enum spulse_spool_format format)
{
	const struct spulse_output output = {.size = sizeof(output), .write = write_out};
	struct spulse_convert_report report = {.size = sizeof(report)};
	SPULSE_CLEANUP(replay) replay = NULL;
	struct spulse_error *err = NULL;
	struct out *out;
	int status;

	if (spulse_replay_open(from, &replay, &err) < 0)
		return tool_fail(err);
	out = out_file(to, from);
	if (!out)
		return TOOL_FAILED;
	if (spulse_spool_convert(replay, format, &output, out, &report, &err) < 0) {
		if (out_stopped(out)) {
			spulse_error_free(err);
			return out_close(out, TOOL_FAILED);
		}
		return out_abandon(out, tool_fail(err));
	}
	status = out_close(out, TOOL_DONE);
	if (status == TOOL_DONE) {
		if (spulse_source_recovered_from_truncated_tail(spulse_replay_source(replay)))
			tool_message("%s ends inside of a record, which was left out", from);
		say_losses(&report);
	}
	return status;
}

int cmd_convert(int argc, char **argv)
{
	static const char *const formats[] = {"4", "3", NULL};
	const char *to = NULL;
	int format = 0;
	const struct cli_option options[] = {
		{'o', "output", CLI_STRING, &to, "FILE",
		 .help = "Where to write; \"-\" is the standard output. Needed."},
		{0, "format", CLI_CHOICE, &format, "VERSION",
		 .help = "4 (the default), or 3 for readers of stackpulse 0.10.",
		 .choices = formats},
	};
	const struct cli_group groups[] = {CLI_GROUP("Options", options)};
	const struct cli_spec spec = {
		.command = "convert",
		.usage = "-o FILE [--format VERSION] [FILE]",
		.about = "Writes a recording in another version of the file format and says what "
			 "that version cannot hold. FILE is stackpulse.spool unless given.",
		.groups = groups,
		.group_count = 1,
		.maximum_arguments = 1,
	};
	int status = cli_parse(&spec, &argc, &argv);

	if (status != CLI_GO_ON)
		return status;
	if (!to)
		return cli_usage_error(&spec, "-o FILE is missing");
	return convert(argc ? argv[0] : TOOL_DEFAULT_SPOOL, to,
		       format ? SPULSE_SPOOL_FORMAT_3 : SPULSE_SPOOL_FORMAT_4);
}
