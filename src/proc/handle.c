/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A process and not whatever gets its number later: a pidfd, or, where there is none, the number
 * with the start time from its stat file.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "procfs.h"

struct proc_handle {
	pid_t pid;
	int fd;
	bool exited;
	uint64_t start_time; /* only without a pidfd */
};

int proc_pidfd_open(pid_t pid)
{
	int fd = syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -errno : fd;
}

int proc_pidfd_signal(int pidfd, int signal)
{
	return syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0) < 0 ? -errno : 0;
}

int proc_handle_open(pid_t pid, struct proc_handle **handle_out, struct spulse_error **err)
{
	struct proc_handle *handle;
	struct proc_stat stat;
	int r;

	if (!spulse_pid_valid(pid))
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "%d is not a process id", pid);
	handle = calloc(1, sizeof(*handle));
	if (!handle)
		return err_no_memory(err);
	handle->pid = pid;
	handle->fd = proc_pidfd_open(pid);
	if (handle->fd < 0) {
		r = proc_stat_read(pid, 0, &stat);
		if (r < 0) {
			char path[PROC_PATH_MAX];

			free(handle);
			proc_path(path, pid, 0, "stat");
			return proc_read_error(err, -r, pid, path);
		}
		handle->start_time = stat.start_time;
	}
	*handle_out = handle;
	return 0;
}

pid_t proc_handle_pid(const struct proc_handle *handle)
{
	return handle->pid;
}

int proc_handle_fd(const struct proc_handle *handle)
{
	return handle->fd >= 0 ? handle->fd : -1;
}

void proc_handle_free(struct proc_handle *handle)
{
	if (!handle)
		return;
	if (handle->fd >= 0)
		close(handle->fd);
	free(handle);
}

/* A pidfd is readable once the whole thread group is gone; a zombie counts. */
static int judge_poll(struct proc_handle *handle, short revents, struct spulse_error **err)
{
	if (revents & (POLLERR | POLLNVAL))
		return err_file(err, SPULSE_ERROR_IO, EBADF, NULL,
				"the descriptor that watches process %d is broken", handle->pid);
	handle->exited = revents & (POLLIN | POLLHUP);
	return handle->exited;
}

static int judge_stat(struct proc_handle *handle, struct spulse_error **err)
{
	struct proc_stat stat;
	int r = proc_stat_read(handle->pid, 0, &stat);

	if (r == -ENOENT || r == -ESRCH) {
		handle->exited = true;
	} else if (r < 0) {
		char path[PROC_PATH_MAX];

		proc_path(path, handle->pid, 0, "stat");
		return proc_read_error(err, -r, handle->pid, path);
	} else {
		/* A leader may be a zombie while other threads go on. */
		handle->exited = stat.start_time != handle->start_time ||
				 ((stat.state == 'Z' || stat.state == 'X') && stat.threads <= 1);
	}
	return handle->exited;
}

static int poll_now(struct pollfd *fds, size_t n, struct spulse_error **err)
{
	int r;

	do
		r = poll(fds, n, 0);
	while (r < 0 && errno == EINTR);
	return r < 0 ? err_io(err, errno, NULL, "cannot poll process descriptors") : 0;
}

int proc_handle_exited(struct proc_handle *handle, struct spulse_error **err)
{
	struct pollfd fd = { .fd = handle->fd, .events = POLLIN };
	int r;

	if (handle->exited)
		return 1;
	if (handle->fd < 0)
		return judge_stat(handle, err);
	r = poll_now(&fd, 1, err);
	return r < 0 ? r : judge_poll(handle, fd.revents, err);
}

int proc_handles_exited(struct proc_handle *const *handles, size_t n, bool *exited,
			struct spulse_error **err)
{
	_cleanup_free_ struct pollfd *fds = calloc(n ? n : 1, sizeof(*fds));
	int r;

	if (!fds)
		return err_no_memory(err);
	/* poll ignores negative descriptors. */
	for (size_t i = 0; i < n; i++)
		fds[i] = (struct pollfd){
			.fd = handles[i]->exited ? -1 : handles[i]->fd,
			.events = POLLIN,
		};
	r = poll_now(fds, n, err);
	for (size_t i = 0; r >= 0 && i < n; i++) {
		if (handles[i]->exited)
			r = 1;
		else if (handles[i]->fd < 0)
			r = judge_stat(handles[i], err);
		else
			r = judge_poll(handles[i], fds[i].revents, err);
		exited[i] = r > 0;
	}
	return MIN(r, 0);
}

int proc_handle_signal(struct proc_handle *handle, int signal)
{
	int r;

	if (handle->fd >= 0)
		return proc_pidfd_signal(handle->fd, signal);
	r = judge_stat(handle, NULL);
	if (r != 0)
		return -ESRCH;
	return kill(handle->pid, signal) < 0 ? -errno : 0;
}
