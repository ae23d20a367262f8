/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Why an event could not be opened: the call, what it was about, the errno, and the one setting
 * that explains it, with its present value and the change that helps. Never a guess: where
 * nothing explains it, the text says so.
 */
#include <errno.h>
#include <linux/capability.h>
#include <unistd.h>

#include "live.h"

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif

static const char *const paranoid_path = "/proc/sys/kernel/perf_event_paranoid";
static const char *const mlock_path = "/proc/sys/kernel/perf_event_mlock_kb";

static bool may_monitor(void)
{
	return perf_sys->capable(CAP_PERFMON) || perf_sys->capable(CAP_SYS_ADMIN);
}

static void say_paranoid(struct strbuf *text, int64_t now, int64_t needed, const char *what)
{
	strbuf_printf(text, "%s is %lld, which refuses %s without CAP_PERFMON; it helps to run "
		      "\"sysctl kernel.perf_event_paranoid=%lld\" or to give CAP_PERFMON",
		      paranoid_path, (long long)now, what, (long long)needed);
}

/* Another user's process, or one that made itself unreadable. */
static bool say_owner(struct strbuf *text, pid_t pid)
{
	uid_t user, folder, own = geteuid();

	if (perf_sys->owners(pid, &user, &folder) < 0)
		return false;
	if (user != own) {
		strbuf_printf(text, "process %d belongs to user %u and we are user %u; it helps to "
			      "run as that user or with CAP_PERFMON", pid, user, own);
		return true;
	}
	if (folder != user) {
		strbuf_printf(text, "process %d is not dumpable (it changed its user or called "
			      "prctl(PR_SET_DUMPABLE, 0)); it helps to run with CAP_PERFMON", pid);
		return true;
	}
	return false;
}

static void explain_denied(struct strbuf *text, const struct perf_failure *f)
{
	int64_t paranoid;
	bool known = perf_sys->read_number(paranoid_path, &paranoid) == 0;

	if (may_monitor()) {
		strbuf_puts(text, "we have CAP_PERFMON: a security module or the seccomp filter of "
				  "a container refuses it; allow perf_event_open there");
		return;
	}
	if (known && paranoid >= 3)
		say_paranoid(text, paranoid, 2, "every use");
	else if (known && f->tid == -1 && paranoid >= 1)
		say_paranoid(text, paranoid, 0, "to record every process");
	else if (known && f->kind == PERF_KIND_SWITCH && paranoid >= 2)
		say_paranoid(text, paranoid, 1, "to record blocked time");
	else if (f->tid == -1 || !say_owner(text, f->pid))
		strbuf_printf(text, "%s is %lld and the process is ours: a security module or "
			      "the seccomp filter of a container refuses it; allow "
			      "perf_event_open there",
			      paranoid_path, known ? (long long)paranoid : -1ll);
}

static void explain_descriptors(struct strbuf *text, const struct perf_failure *f)
{
	struct rlimit limit = { 0 };

	perf_sys->get_limit(RLIMIT_NOFILE, &limit);
	strbuf_printf(text, "RLIMIT_NOFILE is %llu (hard limit %llu) and %zu events are open; each "
		      "thread needs one descriptor per CPU; it helps to raise the hard limit "
		      "(\"ulimit -Hn\", LimitNOFILE= of a service)",
		      (unsigned long long)limit.rlim_cur, (unsigned long long)limit.rlim_max,
		      f->descriptors);
}

static void explain_locked(struct strbuf *text, const struct perf_failure *f)
{
	struct rlimit limit = { 0 };
	int64_t kb;

	perf_sys->get_limit(RLIMIT_MEMLOCK, &limit);
	if (perf_sys->read_number(mlock_path, &kb) < 0)
		kb = -1;
	strbuf_printf(text, "not even %llu KiB of ring may be locked: %s is %lld KiB per CPU and "
		      "RLIMIT_MEMLOCK is ", (unsigned long long)f->bytes >> 10, mlock_path,
		      (long long)kb);
	if (limit.rlim_cur == RLIM_INFINITY)
		strbuf_puts(text, "unlimited");
	else
		strbuf_printf(text, "%llu KiB", (unsigned long long)limit.rlim_cur >> 10);
	strbuf_puts(text, ", both shared with every other profiler of this user; it helps to "
			  "raise one of them, to end the other profiler, to ask for smaller "
			  "stacks, or to give CAP_IPC_LOCK");
}

/* Whether this kernel knows PERF_FORMAT_LOST, which came with Linux 6.0. */
static bool kernel_is_too_old(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = PERF_ATTR_SIZE_VER0,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.disabled = 1,
		.exclude_kernel = 1,
	};
	int plain = perf_sys->open(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC), lost;

	if (plain < 0)
		return false;
	perf_sys->close(plain);
	attr.read_format = PERF_FORMAT_LOST;
	lost = perf_sys->open(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (lost >= 0)
		perf_sys->close(lost);
	return lost == -EINVAL;
}

static enum spulse_error_kind explain(struct strbuf *text, const struct perf_failure *f)
{
	switch (f->errnum) {
	case EACCES:
	case EPERM:
		if (f->mapping)
			explain_locked(text, f);
		else
			explain_denied(text, f);
		return SPULSE_ERROR_PERMISSION;
	case EMFILE:
		explain_descriptors(text, f);
		return SPULSE_ERROR_IO;
	case ENFILE:
		strbuf_puts(text, "the machine's table of open files (fs.file-max) is full");
		return SPULSE_ERROR_IO;
	case ENOMEM:
		strbuf_puts(text, f->mapping ? "no memory for the ring (RLIMIT_AS, or a memory "
					       "limit of the container); smaller stacks help" :
					       "the kernel has no memory");
		return f->mapping ? SPULSE_ERROR_IO : SPULSE_ERROR_NO_MEMORY;
	case ESRCH:
		strbuf_puts(text, "the process is gone");
		return SPULSE_ERROR_TARGET_GONE;
	case EINVAL:
		if (!f->mapping && kernel_is_too_old()) {
			strbuf_puts(text, "this kernel cannot count lost samples; Linux 6.0 or "
					  "later is needed");
			return SPULSE_ERROR_UNSUPPORTED;
		}
		strbuf_puts(text, "the kernel refuses these settings");
		return SPULSE_ERROR_INVALID_INPUT;
	case ENOENT:
	case ENODEV:
	case ENXIO:
	case EOPNOTSUPP:
		strbuf_puts(text, f->software ? "this kernel lacks the software event" :
						"there is no hardware cycle counter here (as in "
						"many virtual machines); the CPU clock works");
		return SPULSE_ERROR_UNSUPPORTED;
	case ENOSYS:
		strbuf_puts(text, "this kernel was built without perf events");
		return SPULSE_ERROR_UNSUPPORTED;
	case EBUSY:
		strbuf_puts(text, "another profiler holds the counter exclusively");
		return SPULSE_ERROR_IO;
	case EBADMSG:
		strbuf_puts(text, "the kernel describes a ring that makes no sense");
		return SPULSE_ERROR_IO;
	default:
		strbuf_puts(text, "no known setting explains it");
		return SPULSE_ERROR_IO;
	}
}

int perf_report_failure(const struct perf_failure *f, struct spulse_error **err)
{
	struct strbuf text = { 0 }, whom = { 0 };
	enum spulse_error_kind kind = explain(&text, f);
	int r;

	if (f->tid == -1)
		strbuf_puts(&whom, "every process");
	else if (f->tid == f->pid)
		strbuf_printf(&whom, "process %d", f->pid);
	else
		strbuf_printf(&whom, "thread %d of process %d", f->tid, f->pid);
	if (text.failed || whom.failed)
		r = err_no_memory(err);
	else
		r = err_file(err, kind, f->errnum, NULL, "%s failed for %s on CPU %u (%s): %s",
			     f->mapping ? "mmap of a ring" : "perf_event_open", whom.data, f->cpu,
			     strerrorname_np(f->errnum) ? strerrorname_np(f->errnum) : "?",
			     text.data);
	strbuf_release(&text);
	strbuf_release(&whom);
	return r;
}
