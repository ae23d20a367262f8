/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "procfs.h"

const char *proc_root = "/proc";

void proc_path(char path[PROC_PATH_MAX], pid_t pid, pid_t tid, const char *name)
{
	if (tid)
		snprintf(path, PROC_PATH_MAX, "%s/%d/task/%d/%s", proc_root, pid, tid, name);
	else
		snprintf(path, PROC_PATH_MAX, "%s/%d/%s", proc_root, pid, name);
}

int proc_read_error(struct spulse_error **err, int errnum, pid_t pid, const char *path)
{
	if (errnum == ENOENT || errnum == ESRCH)
		return err_file(err, SPULSE_ERROR_TARGET_GONE, ESRCH, path,
				"process %d is gone", pid);
	if (errnum == EACCES || errnum == EPERM)
		return err_file(err, SPULSE_ERROR_PERMISSION, errnum, path,
				"process %d may not be looked at (it belongs to another user or "
				"made itself non-dumpable; CAP_SYS_PTRACE permits it)", pid);
	return err_io(err, errnum, path, "cannot read");
}

int proc_file_read(pid_t pid, pid_t tid, const char *name, size_t max, struct strbuf *sb)
{
	char path[PROC_PATH_MAX];
	int r;

	proc_path(path, pid, tid, name);
	r = read_file(path, max, sb);
	if (r == 0 && strcmp(name, "comm") == 0 && sb->len && sb->data[sb->len - 1] == '\n')
		sb->data[--sb->len] = '\0';
	return r;
}

/* Field `number` (3 = state) of a stat line; fields after the name's ")" are separated by one
 * blank. NULL when there are not that many. */
static const char *stat_field(const char *at, const char *end, int number)
{
	for (int i = 3; i < number; i++) {
		at = memchr(at, ' ', end - at);
		if (!at)
			return NULL;
		at++;
	}
	return at < end ? at : NULL;
}

static bool field_number(const char *at, const char *end, uint64_t *value)
{
	uint64_t v = 0;

	if (!at || !isdigit((unsigned char)*at))
		return false;
	for (; at < end && isdigit((unsigned char)*at); at++)
		if (mul_overflows(v, 10, &v) || add_overflows(v, (uint64_t)(*at - '0'), &v))
			return false;
	*value = v;
	return true;
}

bool proc_stat_parse(const char *text, size_t len, struct proc_stat *stat)
{
	const char *end = text + len;
	/* The name may contain ")" and blanks: only the last ")" ends it. */
	const char *at = memrchr(text, ')', len);
	uint64_t ppid;

	if (!at || end - at < 3 || at[1] != ' ')
		return false;
	at += 2;
	stat->state = *at;
	if (!field_number(stat_field(at, end, 4), end, &ppid) || ppid > INT_MAX ||
	    !field_number(stat_field(at, end, 20), end, &stat->threads) ||
	    !field_number(stat_field(at, end, 22), end, &stat->start_time))
		return false;
	stat->ppid = ppid;
	return true;
}

int proc_stat_read(pid_t pid, pid_t tid, struct proc_stat *stat)
{
	struct strbuf text = { 0 };
	int r = proc_file_read(pid, tid, "stat", 65536, &text);

	if (r == 0 && !proc_stat_parse(text.data, text.len, stat))
		r = text.len ? -EBADMSG : -ESRCH;
	strbuf_release(&text);
	return r;
}

int proc_status_number(pid_t pid, pid_t tid, const char *label, pid_t *value)
{
	struct strbuf text = { 0 };
	int r = proc_file_read(pid, tid, "status", 65536, &text);
	const char *line = r == 0 ? text.data : NULL;
	size_t label_len = strlen(label);

	if (r == 0)
		r = -EBADMSG;
	/* Only at line starts: the Name line escapes its line ends. */
	while (line) {
		if (strncmp(line, label, label_len) == 0 && line[label_len] == ':') {
			*value = strtol(line + label_len + 1, NULL, 10);
			r = 0;
			break;
		}
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	strbuf_release(&text);
	return r;
}

int proc_tgid_read(pid_t tid, pid_t *tgid)
{
	return proc_status_number(tid, 0, "Tgid", tgid);
}

int proc_tracer_read(pid_t pid, pid_t tid, pid_t *tracer)
{
	return proc_status_number(pid, tid, "TracerPid", tracer);
}

int proc_exe_identity(pid_t pid, uint64_t *device, uint64_t *inode)
{
	char path[PROC_PATH_MAX];
	struct stat st;

	proc_path(path, pid, 0, "exe");
	if (stat(path, &st) < 0)
		return -errno;
	*device = st.st_dev;
	*inode = st.st_ino;
	return 0;
}
