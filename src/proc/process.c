/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <stdio.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "procfs.h"

struct spulse_exit_watcher {
	struct proc_handle *handle;
};

bool spulse_pid_valid(int64_t pid)
{
	return pid >= 1 && pid <= INT_MAX;
}

bool spulse_tid_valid(int64_t tid)
{
	return spulse_pid_valid(tid);
}

static int check_pid(pid_t pid, struct spulse_error **err)
{
	if (spulse_pid_valid(pid))
		return 0;
	return err_set(err, SPULSE_ERROR_INVALID_INPUT, "%d is not a process id", pid);
}

int spulse_process_exists(pid_t pid, struct spulse_error **err)
{
	char path[PROC_PATH_MAX];
	int r = check_pid(pid, err);

	if (r < 0)
		return r;
	proc_path(path, pid, 0, "stat");
	if (access(path, F_OK) == 0)
		return 1;
	if (errno == ENOENT || errno == ESRCH)
		return 0;
	return err_io(err, errno, path, "cannot tell whether the process exists");
}

int spulse_process_is_alive(struct spulse_exit_watcher *watcher, pid_t pid,
			    struct spulse_error **err)
{
	struct proc_handle *handle;
	int r = check_pid(pid, err);

	if (r < 0)
		return r;
	if (watcher) {
		if (proc_handle_pid(watcher->handle) != pid)
			return err_set(err, SPULSE_ERROR_INVALID_INPUT,
				       "the watcher is of process %d, not of %d",
				       proc_handle_pid(watcher->handle), pid);
		r = proc_handle_exited(watcher->handle, err);
		return r < 0 ? r : !r;
	}
	r = spulse_process_exists(pid, err);
	if (r <= 0)
		return r;
	r = proc_handle_open(pid, &handle, err);
	if (r == -SPULSE_ERROR_TARGET_GONE) {
		if (err) {
			spulse_error_free(*err);
			*err = NULL;
		}
		return 0;
	}
	if (r < 0)
		return r;
	r = proc_handle_exited(handle, err);
	proc_handle_free(handle);
	return r < 0 ? r : !r;
}

static int send_to(struct proc_handle *handle, int signal, struct spulse_error **err)
{
	pid_t pid = proc_handle_pid(handle);
	const char *abbreviation = sigabbrev_np(signal);
	char name[32];
	int r = proc_handle_signal(handle, signal);

	if (r == 0)
		return 0;
	if (abbreviation)
		snprintf(name, sizeof(name), "SIG%s", abbreviation);
	else
		snprintf(name, sizeof(name), "signal %d", signal);
	if (r == -ESRCH)
		return err_file(err, SPULSE_ERROR_TARGET_GONE, ESRCH, NULL,
				"cannot send %s to process %d", name, pid);
	if (r == -EPERM)
		return err_file(err, SPULSE_ERROR_PERMISSION, EPERM, NULL,
				"cannot send %s to process %d of another user without CAP_KILL",
				name, pid);
	if (r == -EINVAL)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "there is no %s", name);
	return err_io(err, -r, NULL, "cannot send %s to process %d", name, pid);
}

static int send_signal(pid_t pid, int signal, struct spulse_error **err)
{
	struct proc_handle *handle;
	int r = proc_handle_open(pid, &handle, err);

	if (r < 0)
		return r;
	r = send_to(handle, signal, err);
	proc_handle_free(handle);
	return r;
}

int spulse_process_interrupt(pid_t pid, struct spulse_error **err)
{
	return send_signal(pid, SIGINT, err);
}

int spulse_process_kill(pid_t pid, struct spulse_error **err)
{
	return send_signal(pid, SIGKILL, err);
}

int spulse_exit_watcher_new(pid_t pid, struct spulse_exit_watcher **watcher_out,
			    struct spulse_error **err)
{
	struct spulse_exit_watcher *watcher = calloc(1, sizeof(*watcher));
	int r;

	if (!watcher)
		return err_no_memory(err);
	r = proc_handle_open(pid, &watcher->handle, err);
	if (r < 0)
		free(watcher);
	else
		*watcher_out = watcher;
	return r;
}

int spulse_exit_watcher_poll(struct spulse_exit_watcher *watcher,
			     enum spulse_exit_state *state_out, struct spulse_error **err)
{
	int r = proc_handle_exited(watcher->handle, err);

	if (r < 0)
		return r;
	*state_out = r ? SPULSE_EXIT_STATE_EXITED : SPULSE_EXIT_STATE_RUNNING;
	return 0;
}

int spulse_exit_watcher_signal(struct spulse_exit_watcher *watcher, int signal,
			       struct spulse_error **err)
{
	return send_to(watcher->handle, signal, err);
}

int spulse_exit_watcher_fd(const struct spulse_exit_watcher *watcher)
{
	return proc_handle_fd(watcher->handle);
}

void spulse_exit_watcher_free(struct spulse_exit_watcher *watcher)
{
	if (!watcher)
		return;
	proc_handle_free(watcher->handle);
	free(watcher);
}
