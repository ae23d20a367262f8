/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "counters.h"
#include "cuts.h"
#include "recording.h"
#include "text.h"
#include "tool.h"

enum {
	POLL_NS = 100000000,
	STATUS_NS = 250000000,
	PRIORITY = -10,
};
/* How long a command that was told to end is still recorded. */
static const int64_t GRACE_NS = 3000000000;

static volatile sig_atomic_t noted_signal;
/* The signal came from a process, not from the terminal, whose Ctrl-C reaches the command too. */
static volatile sig_atomic_t noted_for_us_alone;

static void note_signal(int number, siginfo_t *info, void *context)
{
	(void)context;
	noted_signal = number;
	noted_for_us_alone = info->si_code <= 0;
}

void recording_catch_signals(void)
{
	struct sigaction action = {.sa_sigaction = note_signal, .sa_flags = SA_SIGINFO}, before;

	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	/* "nohup stackpulse record" is to stay. */
	if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &action, NULL);
}

int recording_signal(void)
{
	return noted_signal;
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Passes a signal on that the command did not get from the terminal. */
static void pass_signal_on(const struct recording *recording)
{
	if (noted_for_us_alone && recording->launch && !recording->ended) {
		noted_for_us_alone = 0;
		kill(spulse_launch_pid(recording->launch), noted_signal);
	}
}

static void show_status(struct recording *recording, int64_t now)
{
	struct spulse_recording_summary summary = {.size = sizeof(summary)};
	char line[256], shown[256], samples[32], lost[32], elapsed[32];
	struct winsize size = {.ws_col = 80};
	int len;

	if (recording->quiet || now - recording->status_ns < STATUS_NS || !isatty(STDERR_FILENO))
		return;
	recording->status_ns = now;
	recording->status_shown = true;
	spulse_recorder_summary(recording->recorder, &summary);
	text_duration(elapsed, (uint64_t)((now - recording->started_ns) / 100000000 * 100000000));
	len = snprintf(line, sizeof(line), "recording  %s  %s samples  %s lost  %s", elapsed,
		       text_count(samples, summary.samples), text_count(lost, summary.lost_events),
		       recording->target);
	if (len >= (int)sizeof(line))
		len = (int)sizeof(line) - 1;
	ioctl(STDERR_FILENO, TIOCGWINSZ, &size);
	if (size.ws_col > 1 && len >= size.ws_col)
		len = size.ws_col - 1;
	text_escape(shown, sizeof(shown), line, (size_t)len, TEXT_TERMINAL);
	fprintf(stderr, "\r%s\x1b[K", shown);
}

static void clear_status(struct recording *recording)
{
	if (recording->status_shown)
		fputs("\r\x1b[K", stderr);
	recording->status_shown = false;
}

/* 1 while the target lives, 0 when it ended. */
static int target_lives(struct recording *recording, struct spulse_error **err)
{
	int r;

	if (recording->launch) {
		r = spulse_launch_try_wait(recording->launch, &recording->wait_status, err);
		if (r > 0)
			recording->ended = true;
		return r < 0 ? r : r == 0;
	}
	if (recording->everyone)
		return 1;
	for (size_t i = 0; i < recording->pid_count; i++) {
		r = spulse_recorder_process_is_active(recording->recorder, recording->pids[i], err);
		if (r)
			return r;
	}
	return 0;
}

/* When to end at the latest, as far as is known now. */
static int64_t deadline(const struct recording *recording, int64_t signalled_ns)
{
	int64_t end = INT64_MAX;

	if (recording->duration_ns >= 0 &&
	    __builtin_add_overflow(recording->started_ns, recording->duration_ns, &end))
		end = INT64_MAX;
	if (signalled_ns) {
		int64_t grace = recording->launch ? signalled_ns + GRACE_NS : signalled_ns;

		end = grace < end ? grace : end;
	}
	return end;
}

static int record_loop(struct recording *recording, struct spulse_error **err)
{
	int64_t signalled_ns = 0;

	for (;;) {
		int64_t now = now_ns(), left;
		int r = target_lives(recording, err);

		if (r <= 0)
			return r;
		if (noted_signal && !signalled_ns)
			signalled_ns = now;
		if (noted_signal)
			pass_signal_on(recording);
		left = deadline(recording, signalled_ns) - now;
		if (left <= 0)
			return 0;
		r = spulse_recorder_poll(recording->recorder, left < POLL_NS ? left : POLL_NS, NULL,
					 err);
		if (r < 0)
			return r;
		show_status(recording, now_ns());
	}
}

/*
 * On a busy machine a recorder of ordinary priority waits longer for its turn than a ring lasts,
 * and loses samples. It needs hardly any time, so let it have that soon, where that is permitted
 * and the user has not chosen a priority. The command runs already and keeps its own.
 */
static void raise_priority(void)
{
	errno = 0;
	if (getpriority(PRIO_PROCESS, 0) == 0 && !errno)
		setpriority(PRIO_PROCESS, 0, PRIORITY);
}

int recording_run(struct recording *recording, struct spulse_recording_summary *summary,
		  struct spulse_error **err)
{
	int r, end;

	raise_priority();
	recording->started_ns = now_ns();
	if (!recording->quiet)
		tool_message("recording %s%s", recording->target,
			     recording->launch ? "" : "; Ctrl-C ends");
	r = record_loop(recording, err);
	end = spulse_recorder_finish(recording->recorder, summary, r < 0 ? NULL : err);
	clear_status(recording);
	return r < 0 ? r : end;
}

static double share(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* What to do about stacks that are cut, by what cut them. */
static void advise_on_cuts(const struct recording *recording,
			   const struct spulse_recording_summary *summary)
{
	struct spulse_error *err = NULL;
	struct cuts cuts = {0};
	uint64_t short_bytes = summary->sample_errors[SPULSE_SAMPLE_ERROR_STACK_TRUNCATED];

	if (recording->file->regular && cuts_count(&cuts, recording->file->path, &err) < 0)
		spulse_error_free(err);
	if (share(cuts.generated, summary->samples) >= 5)
		tool_message("%.1f %% of the stacks end in code made at run time, whose callers "
			     "cannot be found without frame pointers; a larger --stack-size does "
			     "not help (CPython: an interpreter built with "
			     "-fno-omit-frame-pointer does)",
			     share(cuts.generated, summary->samples));
	short_bytes -= cuts.generated < short_bytes ? cuts.generated : short_bytes;
	if (share(short_bytes, summary->samples) < 5)
		return;
	if (recording->stack_size < SPULSE_MAX_SAMPLE_USER_STACK)
		tool_message("%.1f %% of the stacks are deeper than the %" PRIu64
			     " bytes copied for each sample: --stack-size %d keeps more of them",
			     share(short_bytes, summary->samples), recording->stack_size,
			     SPULSE_MAX_SAMPLE_USER_STACK);
	else
		tool_message("%.1f %% of the stacks are deeper than the largest copy that the "
			     "kernel makes: their outer functions are missing",
			     share(short_bytes, summary->samples));
}

static void tell_quality(const struct recording *recording,
			 const struct spulse_recording_summary *summary)
{
	double cut = share(summary->truncated_frame_markers, summary->samples);
	const char *kernel = "not asked for (--kernel)";

	if (recording->kernel_wanted)
		kernel = summary->kernel_enabled ? "yes"
						 : "no, the kernel refused them "
						   "(see \"stackpulse doctor\")";
	tool_message("stacks %.1f %% complete, %.1f %% truncated; event %s; kernel frames %s",
		     100 - cut, cut,
		     summary->sampling_event == SPULSE_EVENT_CYCLES ? "cycles" : "cpu-clock",
		     kernel);
	if (cut >= 5)
		advise_on_cuts(recording, summary);
}

static void print_json(const struct recording *recording,
		       const struct spulse_recording_summary *summary)
{
	struct out *out = out_stderr();
	struct json json;

	json_init(&json, out);
	json_begin_object(&json);
	json_field_bytes(&json, "file", recording->file->path, strlen(recording->file->path));
	if (recording->file->regular)
		json_field_uint(&json, "file_bytes", spoolfile_bytes(recording->file));
	json_field_uint(&json, "elapsed_ns", (uint64_t)(now_ns() - recording->started_ns));
	counters_json(&json, summary);
	counters_json_modules(&json, recording->recorder);
	json_end_object(&json);
	json_end_line(&json);
	out_close(out, TOOL_DONE);
}

void recording_tell(const struct recording *recording,
		    const struct spulse_recording_summary *summary)
{
	bool usual = !strcmp(recording->file->path, TOOL_DEFAULT_SPOOL);
	char bytes[32], size[40] = "", elapsed[32], count[32];

	if (recording->json)
		print_json(recording, summary);
	if (recording->quiet)
		return;
	if (recording->file->regular)
		snprintf(size, sizeof(size), " (%s)",
			 text_bytes(bytes, spoolfile_bytes(recording->file)));
	tool_message("samples=%" PRIu64 " lost=%" PRIu64 " in %s%s after %s", summary->samples,
		     summary->lost_events, recording->file->path, size,
		     text_duration(elapsed, (uint64_t)(now_ns() - recording->started_ns)));
	if (recording->cut_off)
		tool_message("the file ends where it could not be written further, and lacks the "
			     "last of these samples");
	if (summary->samples)
		tell_quality(recording, summary);
	else
		tool_message("no samples: what was recorded used hardly any CPU time%s",
			     recording->off_cpu ? "" : "; --off-cpu records the time that it "
						       "waits");
	counters_tell_drops(summary);
	if (summary->lost_events)
		tool_message("the kernel dropped %s records because we did not read fast enough%s; "
			     "%s smaller --stack-size helps",
			     text_count(count, summary->lost_events),
			     recording->off_cpu ? ", waits among them" : "",
			     recording->off_cpu ? "a" : "a lower -F or a");
	if (recording->file->kept_old)
		tool_message("the recording before it is %s.old", recording->file->path);
	if (recording->file->regular && summary->samples)
		tool_message("next: stackpulse report%s%s, or stackpulse flame%s%s -o flame.html",
			     usual ? "" : " ", usual ? "" : recording->file->path, usual ? "" : " ",
			     usual ? "" : recording->file->path);
}

bool recording_wait(struct recording *recording)
{
	struct spulse_error *err = NULL;
	int64_t told_ns = 0;
	bool told = false;

	while (recording->launch && !recording->ended) {
		int r = spulse_launch_try_wait(recording->launch, &recording->wait_status, &err);

		if (r < 0) {
			spulse_error_free(err);
			return false;
		}
		recording->ended = r > 0;
		if (recording->ended)
			break;
		if (noted_signal) {
			pass_signal_on(recording);
			if (!told_ns)
				told_ns = now_ns();
			else if (now_ns() - told_ns > GRACE_NS / 3)
				return false;
		} else if (!told && !recording->quiet) {
			tool_message("the command runs on (pid %d); waiting for it",
				     (int)spulse_launch_pid(recording->launch));
			told = true;
		}
		poll(NULL, 0, 20);
	}
	return true;
}
