/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "cli.h"
#include "recording.h"
#include "spoolfile.h"
#include "tool.h"

enum { DEFAULT_FREQUENCY = 1000, DEFAULT_STACK_SIZE = 32768 };

/* What the command line asks for. */
struct request {
	/* 0 = the default. */
	uint64_t frequency;
	bool frequency_maximum;
	const char *path;
	int64_t duration_ns;
	uint64_t stack_size;
	bool kernel;
	bool no_children;
	bool no_annotations;
	int mode;
	int format;
	bool quiet;
	struct cli_pids pids;
	const char *const *command;
};

static const char *parse_frequency(void *target, const char *text)
{
	struct request *request = target;
	uint64_t value;

	request->frequency_maximum = !strcmp(text, "max");
	request->frequency = 0;
	if (request->frequency_maximum)
		return NULL;
	if (!cli_parse_number(text, &value) || !value || value > UINT32_MAX)
		return "must be a whole number of samples per second above 0, or \"max\"";
	request->frequency = value;
	return NULL;
}

static void describe(const struct request *request, char *buf, size_t size)
{
	size_t used = 0;

	if (request->command) {
		for (size_t i = 0; request->command[i] && used < size; i++)
			used += (size_t)snprintf(buf + used, size - used, "%s%s", i ? " " : "",
						 request->command[i]);
		return;
	}
	used = (size_t)snprintf(buf, size, "process");
	for (size_t i = 0; i < request->pids.count && used < size; i++)
		used += (size_t)snprintf(buf + used, size - used, "%s %d", i ? "," : "",
					 (int)request->pids.pids[i]);
}

/* The usual rate, or less where the kernel's limit is lower. */
static uint32_t default_frequency(bool quiet)
{
	uint32_t maximum;

	if (spulse_max_sample_rate(&maximum, NULL) < 0 || maximum >= DEFAULT_FREQUENCY)
		return DEFAULT_FREQUENCY;
	if (!quiet)
		tool_message("recording at the kernel's limit of %" PRIu32
			     " samples per second (/proc/sys/kernel/perf_event_max_sample_rate)",
			     maximum);
	return maximum ? maximum : 1;
}

static struct spulse_recorder_options recorder_options(const struct request *request)
{
	struct spulse_recorder_options options = {
		.size = sizeof(options),
		.frequency = (uint32_t)request->frequency,
		.frequency_maximum = request->frequency_maximum,
		.stack_size = (uint32_t)request->stack_size,
		.include_kernel = request->kernel,
		.follow = request->no_children ? SPULSE_FOLLOW_NONE : SPULSE_FOLLOW_DESCENDANTS,
		.format = request->format ? SPULSE_SPOOL_FORMAT_3 : SPULSE_SPOOL_FORMAT_4,
		.annotate = !request->no_annotations,
	};
	struct timespec now;

	if (!options.frequency && !options.frequency_maximum)
		options.frequency = default_frequency(request->quiet);
	if (options.format == SPULSE_SPOOL_FORMAT_3) {
		uint32_t rate = options.frequency;

		if (options.frequency_maximum && spulse_max_sample_rate(&rate, NULL) < 0)
			rate = 0;
		clock_gettime(CLOCK_REALTIME, &now);
		options.start_timestamp_us =
			(uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
		options.sample_interval_us = rate ? 1000000 / rate : 0;
	}
	return options;
}

/* Attaches to what runs already, or to the command that waits. */
static int start(const struct request *request, struct spoolfile *file,
		 struct spulse_launch *launch, struct spulse_recorder **recorder_out,
		 struct spulse_error **err)
{
	const struct spulse_recorder_options options = recorder_options(request);
	enum spulse_attach_mode mode = request->mode ? SPULSE_ATTACH_RUNNING : SPULSE_ATTACH_STOP;
	int r;

	if (launch)
		return spoolfile_attach(file, spulse_launch_pid(launch), SPULSE_ATTACH_ON_EXEC,
					&options, recorder_out, err);
	r = spoolfile_attach(file, request->pids.pids[0], mode, &options, recorder_out, err);
	for (size_t i = 1; r >= 0 && i < request->pids.count; i++) {
		enum spulse_attach_outcome outcome;

		r = spulse_recorder_attach_process(*recorder_out, request->pids.pids[i], mode,
						   &outcome, err);
		if (r >= 0 && outcome == SPULSE_ATTACH_EXITED)
			tool_message("process %d ended before it could be recorded",
				     (int)request->pids.pids[i]);
	}
	return r;
}

/* What to do about an error that a newcomer is likely to meet. */
static void advise(const struct spulse_error *err)
{
	uint64_t requested, maximum;

	if (spulse_error_frequency_limit(err, &requested, &maximum))
		tool_message("-F max records at the limit of %" PRIu64 " samples per second",
			     maximum);
	else if (spulse_error_kind(err) == SPULSE_ERROR_PERMISSION)
		tool_message("\"stackpulse doctor\" shows what this machine permits");
}

/* The library knows our output as functions or a descriptor: its name is added here. */
static void tell_write_error(const struct spoolfile *file, const struct spulse_error *err)
{
	int number = spulse_error_errno(err);

	if (spulse_error_kind(err) != SPULSE_ERROR_IO || !number || spulse_error_path(err))
		return;
	if (number == ENOSPC || number == EDQUOT)
		tool_message("%s: no space left; free some or write elsewhere with -o FILE",
			     file->path);
	else
		tool_message("writing %s failed", file->path);
}

static int launch_failure(struct spulse_error *err)
{
	int status = TOOL_RECORD_FAILED;

	if (spulse_error_kind(err) == SPULSE_ERROR_PROCESS_LAUNCH)
		status = spulse_error_errno(err) == ENOENT ? TOOL_NOT_FOUND : TOOL_NOT_EXECUTABLE;
	tool_fail(err);
	return status;
}

static int command_status(const struct recording *recording)
{
	if (WIFSIGNALED(recording->wait_status))
		return TOOL_SIGNAL_BASE + WTERMSIG(recording->wait_status);
	return WEXITSTATUS(recording->wait_status);
}

static int run(const struct request *request, struct spoolfile *file, struct spulse_launch *launch,
	       struct spulse_recorder *recorder, const char *target)
{
	struct spulse_recording_summary summary = {.size = sizeof(summary)};
	struct spulse_error *err = NULL;
	struct recording recording = {
		.recorder = recorder,
		.launch = launch,
		.pids = request->pids.pids,
		.pid_count = request->pids.count,
		.file = file,
		.target = target,
		.duration_ns = request->duration_ns,
		.quiet = request->quiet,
		.kernel_wanted = request->kernel,
		.stack_size = request->stack_size ? request->stack_size : DEFAULT_STACK_SIZE,
	};
	int r = recording_run(&recording, &summary, &err);

	if (r < 0) {
		tell_write_error(file, err);
		tool_fail(err);
	}
	recording_tell(&recording, &summary);
	if (!launch)
		return r < 0 ? TOOL_RECORD_FAILED : TOOL_DONE;
	if (!recording_wait(&recording)) {
		tool_message("the command runs on without us (pid %d)",
			     (int)spulse_launch_pid(launch));
		return r < 0 ? TOOL_RECORD_FAILED : TOOL_SIGNAL_BASE + recording_signal();
	}
	return r < 0 ? TOOL_RECORD_FAILED : command_status(&recording);
}

static int record(const struct request *request, struct spoolfile *file)
{
	SPULSE_CLEANUP(launch) launch = NULL;
	SPULSE_CLEANUP(recorder) recorder = NULL;
	struct spulse_error *err = NULL;
	char target[256];

	if (request->command && spulse_launch_new(request->command, NULL, &launch, &err) < 0)
		return launch_failure(err);
	recording_catch_signals();
	if (start(request, file, launch, &recorder, &err) < 0) {
		tell_write_error(file, err);
		tool_report_error(err);
		advise(err);
		spulse_error_free(err);
		return TOOL_RECORD_FAILED;
	}
	if (launch && spulse_launch_run(launch, recorder, &err) < 0)
		return launch_failure(err);
	if (!spoolfile_publish(file)) {
		if (launch)
			spulse_launch_kill(launch, NULL);
		return TOOL_RECORD_FAILED;
	}
	describe(request, target, sizeof(target));
	return run(request, file, launch, recorder, target);
}

static int check(const struct cli_spec *spec, struct request *request, int argc, char **argv)
{
	if (argc && request->pids.count)
		return cli_usage_error(spec, "either -p or a command, not both");
	if (!argc && !request->pids.count)
		return cli_usage_error(spec, "nothing to record: give -p PID or -- CMD");
	if (argc && !*argv[0])
		return cli_usage_error(spec, "the command's name is empty");
	request->command = argc ? (const char *const *)argv : NULL;
	return CLI_GO_ON;
}

static const char examples[] =
	"  stackpulse record -- ./app --fast      from the first instruction to the end\n"
	"  stackpulse record -p 1234 -d 10        a running process, for ten seconds\n"
	"  stackpulse record -F 99 -o night.spool -p 1234,1240\n"
	"  stackpulse record --kernel -- make     with kernel frames\n";

int cmd_record(int argc, char **argv)
{
	static const char *const modes[] = {"stop", "running", NULL};
	static const char *const formats[] = {"4", "3", NULL};
	struct request request = {.path = TOOL_DEFAULT_SPOOL, .duration_ns = -1};
	const struct cli_option options[] = {
		{'F', "frequency", CLI_CUSTOM, &request, "HZ",
		 .help = "Samples per second of CPU time, or \"max\" for as many as the kernel "
			 "permits. Default: 1000.",
		 .parse = parse_frequency},
		{'o', "output", CLI_STRING, &request.path, "FILE",
		 .help = "Write to FILE instead of stackpulse.spool. An older FILE becomes "
			 "FILE.old."},
		{'d', "duration", CLI_SECONDS, &request.duration_ns, "SECONDS",
		 .help = "Stop recording after that time. The recorded program runs on; a command "
			 "is waited for."},
		{'p', "pid", CLI_CUSTOM, &request.pids, "PID[,PID...]",
		 .help = "Record running processes until they end, or until Ctrl-C.",
		 .parse = cli_parse_pids},
		{0, "stack-size", CLI_SIZE, &request.stack_size, "BYTES",
		 .help = "User stack copied for each sample, at most 65528. More means longer "
			 "stacks and more work. Default: 32k.",
		 .minimum = 1, .maximum = SPULSE_MAX_SAMPLE_USER_STACK},
		{0, "kernel", CLI_FLAG, &request.kernel, NULL,
		 .help = "Record kernel frames, where the system permits it."},
		{0, "no-children", CLI_FLAG, &request.no_children, NULL,
		 .help = "Record no child processes."},
		{0, "mode", CLI_CHOICE, &request.mode, "stop|running",
		 .help = "How to attach with -p. \"stop\" stops the process for about a "
			 "millisecond, so that no thread is missed; \"running\" does not touch it. "
			 "Default: stop.",
		 .choices = modes},
		{0, "format", CLI_CHOICE, &request.format, "3|4",
		 .help = "Version of the file format. Default: 4.", .choices = formats},
		{0, "no-annotations", CLI_FLAG, &request.no_annotations, NULL,
		 .help = "Leave out names, build IDs, host and counters."},
		{'q', "quiet", CLI_FLAG, &request.quiet, NULL,
		 .help = "Say nothing but warnings and errors."},
	};
	const struct cli_group groups[] = {CLI_GROUP("Options", options)};
	const struct cli_spec spec = {
		.command = "record",
		.usage = "[OPTION...] (-p PID[,PID...] | [--] CMD [ARG...])",
		.about =
			"Samples the call stacks of a command or of running processes into a file. "
			"Threads and child processes are followed. Ctrl-C, SIGTERM and SIGHUP end "
			"a "
			"recording with everything saved.\n\n"
			"The exit status is the command's own (128 + signal number when a signal "
			"ended it) or with -p 0; 125 when recording failed, 126 when the command "
			"cannot be executed, 127 when it is not found.",
		.groups = groups,
		.group_count = 1,
		.examples = examples,
		.maximum_arguments = SIZE_MAX,
		.stop_at_argument = true,
	};
	struct spoolfile file;
	int status = cli_parse(&spec, &argc, &argv);

	if (status == CLI_GO_ON)
		status = check(&spec, &request, argc, argv);
	if (status != CLI_GO_ON)
		return status;
	if (!spoolfile_open(&file, request.path))
		return TOOL_RECORD_FAILED;
	status = record(&request, &file);
	spoolfile_close(&file);
	return status;
}
