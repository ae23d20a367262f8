/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "live.h"

static int sys_open(const struct perf_event_attr *attr, pid_t pid, int cpu, int group,
		    unsigned long flags)
{
	long fd = syscall(SYS_perf_event_open, attr, pid, cpu, group, flags);

	return fd < 0 ? -errno : (int)fd;
}

static int sys_map(int fd, size_t bytes, void **area_out)
{
	void *area = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (area == MAP_FAILED)
		return -errno;
	*area_out = area;
	return 0;
}

static void sys_unmap(void *area, size_t bytes)
{
	munmap(area, bytes);
}

static int sys_ioctl(int fd, unsigned long request, unsigned long argument)
{
	return ioctl(fd, request, argument) < 0 ? -errno : 0;
}

static ssize_t sys_read(int fd, void *buf, size_t len)
{
	ssize_t n;

	do
		n = read(fd, buf, len);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static void sys_close(int fd)
{
	close(fd);
}

static int sys_get_limit(int resource, struct rlimit *limit)
{
	return getrlimit(resource, limit) < 0 ? -errno : 0;
}

static int sys_set_limit(int resource, const struct rlimit *limit)
{
	return setrlimit(resource, limit) < 0 ? -errno : 0;
}

/* CapEff of /proc/self/status. */
static bool sys_capable(int capability)
{
	struct strbuf text = { 0 };
	const char *line = NULL;
	bool has = false;

	if (read_file("/proc/self/status", 65536, &text) == 0)
		line = strstr(text.data, "\nCapEff:");
	if (line)
		has = strtoull(line + 8, NULL, 16) >> capability & 1;
	strbuf_release(&text);
	return has;
}

static int sys_owners(pid_t pid, uid_t *user, uid_t *folder)
{
	struct strbuf text = { 0 };
	char path[64];
	const char *line = NULL;
	struct stat st;
	int r;

	/* The folder itself always belongs to the process's user. */
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	r = stat(path, &st) < 0 ? -errno : 0;
	if (r == 0)
		r = read_file(path, 65536, &text);
	if (r == 0) {
		line = strstr(text.data, "\nUid:");
		r = line && sscanf(line + 5, "%*u %u", user) == 1 ? 0 : -EBADMSG;
		*folder = st.st_uid;
	}
	strbuf_release(&text);
	return r;
}

static int sys_open_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

const struct perf_sys perf_real_sys = {
	.open = sys_open,
	.map = sys_map,
	.unmap = sys_unmap,
	.ioctl = sys_ioctl,
	.read = sys_read,
	.close = sys_close,
	.get_limit = sys_get_limit,
	.set_limit = sys_set_limit,
	.capable = sys_capable,
	.owners = sys_owners,
	.open_file = sys_open_file,
	.read_number = read_file_number,
};
const struct perf_sys *perf_sys = &perf_real_sys;
