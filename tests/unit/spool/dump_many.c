/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Dumps many spools in one process, for test_vectors.py. Each line of stdin is "READER PATH" or
 * "tail PATH LENGTH,LENGTH,..."; each answer is one line of JSON.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../tools/stackpulse/dump_file.h"
#include "../../../tools/stackpulse/mem.h"

static void parse_steps(struct grow_steps *grow, char *text)
{
	for (char *part = strtok(text, ","); part; part = strtok(NULL, ","))
		MEM_PUSH(grow->lengths, grow->count, grow->capacity) = strtoull(part, NULL, 10);
}

static void answer(struct json *json, char *line)
{
	char *reader = strtok(line, "\t\n"), *path = strtok(NULL, "\t\n");
	char *steps = strtok(NULL, "\t\n");
	struct grow_steps grow = {0};

	if (!path)
		exit(2);
	if (steps) {
		parse_steps(&grow, steps);
		dump_growing(json, path, &grow);
	} else {
		dump_file(json, path, strcmp(reader, "snapshot") == 0 ? DUMP_SNAPSHOT
				      : strcmp(reader, "replay") == 0 ? DUMP_REPLAY
								      : DUMP_TAIL);
	}
	free(grow.lengths);
}

int main(void)
{
	struct out *out = out_stdout();
	char *line = NULL;
	size_t size = 0;

	while (getline(&line, &size, stdin) > 0) {
		struct json json;

		json_init(&json, out);
		answer(&json, line);
		out_flush(out);
	}
	free(line);
	return out_close(out, TOOL_DONE);
}
