/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>

#include "cli.h"
#include "dump_file.h"
#include "mem.h"

static int dump(const char *path, enum dump_reader reader, const struct grow_steps *grow)
{
	struct out *out = out_stdout();
	struct json json;
	int status;

	json_init(&json, out);
	status = grow->count ? dump_growing(&json, path, grow) : dump_file(&json, path, reader);
	return out_close(out, status);
}

static const char *parse_grow(void *target, const char *text)
{
	struct grow_steps *grow = target;
	char *end;

	do {
		errno = 0;
		MEM_PUSH(grow->lengths, grow->count, grow->capacity) = strtoull(text, &end, 10);
		if (end == text || errno || *text == '-')
			return "must be lengths in bytes, separated by commas";
		text = end + 1;
	} while (*end == ',');
	return *end ? "must be lengths in bytes, separated by commas" : NULL;
}

int cmd_dump(int argc, char **argv)
{
	static const char *const readers[] = {"snapshot", "replay", "tail", NULL};
	struct grow_steps grow = {0};
	int reader = DUMP_SNAPSHOT;
	const struct cli_option options[] = {
		{0, "reader", CLI_CHOICE, &reader, "READER",
		 .help = "How to read: snapshot (all in memory), replay (in sequence) or tail (as "
			 "a growing file).",
		 .choices = readers},
		{0, "grow", CLI_CUSTOM, &grow, "BYTES,...",
		 .help = "With --reader tail: make so many bytes of the file visible, one after "
			 "the other, and print the batches that each step gives.",
		 .parse = parse_grow},
	};
	const struct cli_group groups[] = {CLI_GROUP("Options", options)};
	const struct cli_spec spec = {
		.command = "dump",
		.usage = "[OPTIONS] [FILE]",
		.about = "Prints everything that a recording holds, as it stands in the file, as "
			 "one JSON object with \"outcome\" valid, recovered (the file ends inside "
			 "of a record) or error. The exit status is 1 for an error. FILE is "
			 "stackpulse.spool unless given.",
		.groups = groups,
		.group_count = 1,
		.maximum_arguments = 1,
	};
	int status = cli_parse(&spec, &argc, &argv);
	const char *path = argc ? argv[0] : TOOL_DEFAULT_SPOOL;

	if (status == CLI_GO_ON && grow.count && reader != DUMP_TAIL)
		status = cli_usage_error(&spec, "--grow needs --reader tail");
	if (status == CLI_GO_ON)
		status = dump(path, reader, &grow);
	free(grow.lengths);
	return status;
}
