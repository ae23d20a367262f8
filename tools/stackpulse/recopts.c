/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "recopts.h"

#include <string.h>

#include <stackpulse/record.h>

static const char *parse_frequency(void *target, const char *text)
{
	struct recopts *o = target;
	uint64_t value;

	o->frequency_maximum = !strcmp(text, "max");
	o->frequency = 0;
	if (o->frequency_maximum)
		return NULL;
	if (!cli_parse_number(text, &value) || !value || value > UINT32_MAX)
		return "must be a whole number of samples per second above 0, or \"max\"";
	o->frequency = value;
	return NULL;
}

static const char *const modes[] = {"stop", "running", NULL};
static const char *const formats[] = {"4", "3", NULL};

void recopts_targets(struct recopts *o, struct cli_option options[RECOPTS_TARGETS])
{
	const struct cli_option table[RECOPTS_TARGETS] = {
		{'p', "pid", CLI_CUSTOM, &o->pids, "PID[,PID...]",
		 .help = "Record running processes until they end, or until Ctrl-C.",
		 .parse = cli_parse_pids},
		{'a', "all", CLI_FLAG, &o->everyone, NULL,
		 .help = "Record every process of the machine, until Ctrl-C or while CMD runs. "
			 "Needs CAP_PERFMON, or perf_event_paranoid at 0 or less."},
		{0, "comm", CLI_STRING, &o->comm, "GLOB",
		 .help = "Of all these, record only processes whose name (at most 15 bytes, as ps "
			 "-o comm shows it) matches, such as 'cc1*'."},
		{0, "no-children", CLI_FLAG, &o->no_children, NULL,
		 .help = "Record no child processes."},
		{0, "mode", CLI_CHOICE, &o->mode, "stop|running",
		 .help = "How to attach with -p. \"stop\" stops the process for about a "
			 "millisecond, so that no thread is missed; \"running\" does not touch "
			 "it. Default: stop.",
		 .choices = modes},
		{'d', "duration", CLI_SECONDS, &o->duration_ns, "SECONDS",
		 .help = "Stop recording after that time. The recorded program runs on; a "
			 "command is waited for."},
	};

	memcpy(options, table, sizeof(table));
}

void recopts_samples(struct recopts *o, struct cli_option options[RECOPTS_SAMPLES])
{
	const struct cli_option table[RECOPTS_SAMPLES] = {
		{'F', "frequency", CLI_CUSTOM, o, "HZ",
		 .help = "Samples per second of CPU time, or \"max\" for as many as the kernel "
			 "permits. Default: 1000.",
		 .parse = parse_frequency},
		{0, "off-cpu", CLI_FLAG, &o->off_cpu, NULL,
		 .help = "Also record the time that threads wait, as samples whose innermost "
			 "frame is [off-cpu]. Needs CAP_PERFMON, or perf_event_paranoid at 1 or "
			 "less."},
		{0, "kernel", CLI_FLAG, &o->kernel, NULL,
		 .help = "Record kernel frames, where the system permits it."},
		{0, "stack-size", CLI_SIZE, &o->stack_size, "BYTES",
		 .help = "User stack copied for each sample, at most 65528. More means longer "
			 "stacks and more work. Default: 32k.",
		 .minimum = 1, .maximum = SPULSE_MAX_SAMPLE_USER_STACK},
	};

	memcpy(options, table, sizeof(table));
}

void recopts_outputs(struct recopts *o, struct cli_option options[RECOPTS_OUTPUTS])
{
	const struct cli_option table[RECOPTS_OUTPUTS] = {
		{'o', "output", CLI_STRING, &o->path, "FILE",
		 .help = "Write to FILE instead of stackpulse.spool. An older FILE becomes "
			 "FILE.old."},
		{0, "format", CLI_CHOICE, &o->format, "3|4",
		 .help = "Version of the file format. Default: 4.", .choices = formats},
		{0, "no-annotations", CLI_FLAG, &o->no_annotations, NULL,
		 .help = "Leave out names, build IDs, host and counters."},
		{0, "json", CLI_FLAG, &o->json, NULL,
		 .help = "End with all counters as one JSON object on stderr, and say nothing "
			 "else but warnings and errors."},
		{'q', "quiet", CLI_FLAG, &o->quiet, NULL,
		 .help = "Say nothing but warnings and errors."},
	};

	memcpy(options, table, sizeof(table));
}
