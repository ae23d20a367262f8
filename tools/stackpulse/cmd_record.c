/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "cli.h"
#include "recopts.h"
#include "recording.h"
#include "spoolfile.h"
#include "tool.h"

enum { DEFAULT_FREQUENCY = 1000, DEFAULT_STACK_SIZE = 32768 };

/* How people call what is recorded. */
static void describe(const struct recopts *request, char *buf, size_t size)
{
	size_t used = 0;

	if (request->everyone)
		used = (size_t)snprintf(buf, size, "every process");
	else if (!request->command)
		used = (size_t)snprintf(buf, size, "process");
	for (size_t i = 0; i < request->pids.count && used < size; i++)
		used += (size_t)snprintf(buf + used, size - used, "%s %d", i ? "," : "",
					 (int)request->pids.pids[i]);
	if (request->everyone && request->command && used < size)
		used += (size_t)snprintf(buf + used, size - used, " during ");
	for (size_t i = 0; request->command && request->command[i] && used < size; i++)
		used += (size_t)snprintf(buf + used, size - used, "%s%s", i ? " " : "",
					 request->command[i]);
	if (request->comm && used < size)
		snprintf(buf + used, size - used, ", of it what is called %s", request->comm);
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

static struct spulse_recorder_options recorder_options(const struct recopts *request)
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
		.system_wide = request->everyone,
		.off_cpu = request->off_cpu,
		.comm = request->comm,
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

/*
 * Attaches to the first of the processes that is alive; those before it are gone. Fails with the
 * last one's error when all are.
 */
static int attach_first(const struct recopts *request, struct spoolfile *file,
			const struct spulse_recorder_options *options, size_t *next,
			struct spulse_recorder **recorder_out, struct spulse_error **err)
{
	enum spulse_attach_mode mode = request->mode ? SPULSE_ATTACH_RUNNING : SPULSE_ATTACH_STOP;

	for (;;) {
		pid_t pid = request->pids.pids[(*next)++];
		struct spulse_error *why = NULL;
		int r = spoolfile_attach(file, pid, mode, options, recorder_out, &why);

		if (r >= 0)
			return r;
		if (spulse_error_kind(why) != SPULSE_ERROR_TARGET_GONE ||
		    *next == request->pids.count) {
			*err = why;
			return r;
		}
		spulse_error_free(why);
		tool_message("process %d ended before it could be recorded", (int)pid);
	}
}

/* Attaches to what runs already. */
static int attach_all(const struct recopts *request, struct spoolfile *file,
		      const struct spulse_recorder_options *options,
		      struct spulse_recorder **recorder_out, struct spulse_error **err)
{
	enum spulse_attach_mode mode = request->mode ? SPULSE_ATTACH_RUNNING : SPULSE_ATTACH_STOP;
	size_t next = 0;
	int r = attach_first(request, file, options, &next, recorder_out, err);

	for (; r >= 0 && next < request->pids.count; next++) {
		enum spulse_attach_outcome outcome;

		r = spulse_recorder_attach_process(*recorder_out, request->pids.pids[next], mode,
						   &outcome, err);
		if (r >= 0 && outcome == SPULSE_ATTACH_EXITED)
			tool_message("process %d ended before it could be recorded",
				     (int)request->pids.pids[next]);
	}
	return r;
}

static int start(const struct recopts *request, struct spoolfile *file,
		 struct spulse_launch *launch, struct spulse_recorder **recorder_out,
		 struct spulse_error **err)
{
	const struct spulse_recorder_options options = recorder_options(request);

	if (request->everyone)
		return spoolfile_attach(file, launch ? spulse_launch_pid(launch) : 0,
					SPULSE_ATTACH_RUNNING, &options, recorder_out, err);
	if (launch)
		return spoolfile_attach(file, spulse_launch_pid(launch), SPULSE_ATTACH_ON_EXEC,
					&options, recorder_out, err);
	return attach_all(request, file, &options, recorder_out, err);
}

/* What to do about an error that a newcomer is likely to meet. */
static void advise(const struct recopts *request, const struct spulse_error *err)
{
	uint64_t requested, maximum;

	if (spulse_error_frequency_limit(err, &requested, &maximum))
		tool_message("-F max records at the limit of %" PRIu64 " samples per second",
			     maximum);
	else if (spulse_error_kind(err) == SPULSE_ERROR_PERMISSION && request->pids.count == 1)
		tool_message("\"stackpulse doctor %d\" shows all that stands in the way",
			     (int)request->pids.pids[0]);
	else if (spulse_error_kind(err) == SPULSE_ERROR_PERMISSION)
		tool_message("\"stackpulse doctor\" shows what this machine permits");
}

static bool is_write_error(const struct spulse_error *err)
{
	const char *domain = spulse_error_domain(err);

	return domain && !strcmp(domain, SPULSE_ERROR_DOMAIN_OUTPUT);
}

/* The library knows our output as functions or a descriptor: its name is added here. */
static void tell_write_error(const struct spoolfile *file, const struct spulse_error *err)
{
	int number = spulse_error_errno(err);

	if (!is_write_error(err))
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

static int run(const struct recopts *request, struct spoolfile *file, struct spulse_launch *launch,
	       struct spulse_recorder *recorder, const char *target)
{
	struct spulse_recording_summary summary = {.size = sizeof(summary)};
	struct spulse_error *err = NULL;
	struct recording recording = {
		.recorder = recorder,
		.launch = launch,
		.pids = request->pids.pids,
		.pid_count = request->pids.count,
		.everyone = request->everyone,
		.off_cpu = request->off_cpu,
		.file = file,
		.target = target,
		.duration_ns = request->duration_ns,
		.quiet = request->quiet,
		.json = request->json,
		.kernel_wanted = request->kernel,
		.stack_size = request->stack_size ? request->stack_size : DEFAULT_STACK_SIZE,
	};
	int r = recording_run(&recording, &summary, &err);

	if (r < 0) {
		recording.cut_off = is_write_error(err);
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

/*
 * Each process and each program file that is recorded takes a descriptor. A command that waits to
 * be started keeps the limit that we were given.
 */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int record(const struct recopts *request, struct spoolfile *file)
{
	SPULSE_CLEANUP(launch) launch = NULL;
	SPULSE_CLEANUP(recorder) recorder = NULL;
	struct spulse_error *err = NULL;
	char target[256];

	if (request->command && spulse_launch_new(request->command, NULL, &launch, &err) < 0)
		return launch_failure(err);
	recording_catch_signals();
	raise_descriptor_limit();
	if (start(request, file, launch, &recorder, &err) < 0) {
		tell_write_error(file, err);
		tool_report_error(err);
		advise(request, err);
		spulse_error_free(err);
		return TOOL_RECORD_FAILED;
	}
	/* Told to end before there was anything to record: the command need not run. */
	if (launch && recording_signal())
		return TOOL_SIGNAL_BASE + recording_signal();
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

static int check(const struct cli_spec *spec, struct recopts *request, int argc, char **argv)
{
	if (argc && request->pids.count)
		return cli_usage_error(spec, "either -p or a command, not both");
	if (request->everyone && request->pids.count)
		return cli_usage_error(spec, "either -a or -p, not both");
	if (request->everyone && request->no_children)
		return cli_usage_error(spec, "-a records every process: --no-children does not "
					     "go with it");
	if (!argc && !request->pids.count && !request->everyone)
		return cli_usage_error(spec, "nothing to record: give -p PID, -a or -- CMD");
	if (argc && !*argv[0])
		return cli_usage_error(spec, "the command's name is empty");
	request->command = argc ? (const char *const *)argv : NULL;
	request->quiet |= request->json;
	return CLI_GO_ON;
}

static const char usage[] = "[OPTION...] (-p PID[,PID...] | -a | [--] CMD [ARG...])";

static const char about[] =
	"Samples the call stacks of a command, of running processes or of the whole machine into a "
	"file. Threads and child processes are followed. Ctrl-C, SIGTERM and SIGHUP end a "
	"recording with everything saved.\n\n"
	"The exit status is the command's own (128 + signal number when a signal ended it), or 0 "
	"without one; 125 when recording failed, 126 when the command cannot be executed, 127 when "
	"it is not found.";

static const char examples[] =
	"  stackpulse record -- ./app --fast      from the first instruction to the end\n"
	"  stackpulse record -p 1234 -d 10        a running process, for ten seconds\n"
	"  stackpulse record -F 99 -o night.spool -p 1234,1240\n"
	"  stackpulse record --off-cpu -- ./app   with the time that it waits\n"
	"  stackpulse record --comm 'cc1*' -- make\n"
	"  stackpulse record -a --kernel -d 10    the whole machine\n";

int cmd_record(int argc, char **argv)
{
	struct recopts request = {.path = TOOL_DEFAULT_SPOOL, .duration_ns = -1};
	struct cli_option targets[RECOPTS_TARGETS], samples[RECOPTS_SAMPLES],
		outputs[RECOPTS_OUTPUTS];
	const struct cli_group groups[] = {
		CLI_GROUP("What to record", targets),
		CLI_GROUP("Samples", samples),
		CLI_GROUP("Output", outputs),
	};
	const struct cli_spec spec = {
		.command = "record",
		.usage = usage,
		.about = about,
		.groups = groups,
		.group_count = sizeof(groups) / sizeof(groups[0]),
		.examples = examples,
		.maximum_arguments = SIZE_MAX,
		.stop_at_argument = true,
	};
	struct spoolfile file;
	int status;

	recopts_targets(&request, targets);
	recopts_samples(&request, samples);
	recopts_outputs(&request, outputs);
	status = cli_parse(&spec, &argc, &argv);
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
