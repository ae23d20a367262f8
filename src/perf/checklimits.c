/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Rows of the table of checks: limits of this process and of the machine, and a target. */
#include "checks.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <unistd.h>

/* What the kernel gives by itself: a ring of half a MiB and its page. */
enum { USUAL_LOCKED_KB = 516 };

static bool locks_freely(void)
{
	return perf_may(CAP_PERFMON) || perf_sys->capable(CAP_IPC_LOCK);
}

enum spulse_verdict perf_limits_look_mlock(const struct perf_look *look, struct strbuf *value,
					   struct strbuf *advice)
{
	int64_t kb;

	if (perf_sys->read_number("/proc/sys/kernel/perf_event_mlock_kb", &kb) < 0)
		return perf_unreadable(value);
	strbuf_printf(value, "%lld KiB per CPU", (long long)kb);
	if (!look->failure && (locks_freely() || kb >= USUAL_LOCKED_KB))
		return SPULSE_VERDICT_OK;
	if (!look->failure)
		strbuf_puts(value, ": rings are small and lose samples at high rates");
	strbuf_printf(advice, "run \"sysctl kernel.perf_event_mlock_kb=%lld\"",
		      (long long)(kb < USUAL_LOCKED_KB ? USUAL_LOCKED_KB : kb * 2));
	return SPULSE_VERDICT_LIMITED;
}

bool perf_limits_explain_locking(const struct perf_failure *f)
{
	return f->mapping && (f->errnum == EACCES || f->errnum == EPERM);
}

static void put_limit(struct strbuf *value, rlim_t bytes)
{
	if (bytes == RLIM_INFINITY)
		strbuf_puts(value, "unlimited");
	else
		strbuf_printf(value, "%llu KiB", (unsigned long long)bytes >> 10);
}

enum spulse_verdict perf_limits_look_memlock(const struct perf_look *look, struct strbuf *value,
					     struct strbuf *advice)
{
	struct rlimit limit;

	if (perf_sys->get_limit(RLIMIT_MEMLOCK, &limit) < 0)
		return perf_unreadable(value);
	put_limit(value, limit.rlim_cur);
	if (!look->failure && (locks_freely() || limit.rlim_cur >= 32 << 20))
		return SPULSE_VERDICT_OK;
	strbuf_puts(advice, look->failure ? "raise it" : "for larger rings raise it");
	strbuf_puts(advice, " (\"ulimit -l\", LimitMEMLOCK= of a service), or give CAP_IPC_LOCK");
	return SPULSE_VERDICT_LIMITED;
}

enum spulse_verdict perf_limits_look_address_space(const struct perf_look *look,
						   struct strbuf *value, struct strbuf *advice)
{
	struct rlimit limit;

	if (perf_sys->get_limit(RLIMIT_AS, &limit) < 0)
		return perf_unreadable(value);
	put_limit(value, limit.rlim_cur);
	if (!look->failure && (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= 256 << 20))
		return SPULSE_VERDICT_OK;
	strbuf_puts(advice, "raise it (\"ulimit -v\") or the memory limit of the container, or ask "
			    "for smaller stacks");
	return SPULSE_VERDICT_LIMITED;
}

bool perf_limits_explain_address_space(const struct perf_failure *f)
{
	return f->mapping && f->errnum == ENOMEM;
}

enum spulse_verdict perf_limits_look_descriptors(const struct perf_look *look, struct strbuf *value,
						 struct strbuf *advice)
{
	struct rlimit limit;

	if (perf_sys->get_limit(RLIMIT_NOFILE, &limit) < 0)
		return perf_unreadable(value);
	strbuf_printf(value, "%llu (hard limit %llu)", (unsigned long long)limit.rlim_cur,
		      (unsigned long long)limit.rlim_max);
	if (look->failure)
		strbuf_printf(value, " and %zu events are open, one for each thread and CPU",
			      look->failure->descriptors);
	else if (limit.rlim_max >= 4096)
		return SPULSE_VERDICT_OK;
	else
		strbuf_puts(value, ": each thread needs one descriptor per CPU");
	strbuf_puts(advice, "raise the hard limit (\"ulimit -Hn\", LimitNOFILE= of a service)");
	return SPULSE_VERDICT_LIMITED;
}

bool perf_limits_explain_descriptors(const struct perf_failure *f)
{
	return f->errnum == EMFILE;
}

enum spulse_verdict perf_limits_look_file_max(const struct perf_look *look, struct strbuf *value,
					      struct strbuf *advice)
{
	int64_t now;

	if (perf_sys->read_number("/proc/sys/fs/file-max", &now) < 0)
		return perf_unreadable(value);
	strbuf_printf(value, "%lld", (long long)now);
	if (!look->failure && now >= 4096)
		return SPULSE_VERDICT_OK;
	strbuf_puts(value, " open files of the whole machine");
	strbuf_printf(advice, "run \"sysctl fs.file-max=%lld\"",
		      now > INT64_MAX / 2 ? INT64_MAX : (long long)now * 2);
	return SPULSE_VERDICT_LIMITED;
}

bool perf_limits_explain_file_max(const struct perf_failure *f)
{
	return f->errnum == ENFILE;
}

enum spulse_verdict perf_limits_look_ptrace(const struct perf_look *look, struct strbuf *value,
					    struct strbuf *advice)
{
	int64_t scope;

	(void)look;
	if (perf_sys->read_number("/proc/sys/kernel/yama/ptrace_scope", &scope) < 0) {
		strbuf_puts(value, "none");
		return SPULSE_VERDICT_OK;
	}
	strbuf_printf(value, "%lld", (long long)scope);
	if (scope < 1 || (scope < 3 && perf_sys->capable(CAP_SYS_PTRACE)))
		return SPULSE_VERDICT_OK;
	strbuf_puts(value, ": a running process is stopped by SIGSTOP instead of ptrace while it "
			   "is attached");
	if (scope < 3)
		strbuf_puts(advice, "run \"sysctl kernel.yama.ptrace_scope=0\", or give "
				    "CAP_SYS_PTRACE");
	else
		strbuf_puts(advice, "start the machine with a ptrace_scope below 3, which cannot "
				    "be lowered");
	return SPULSE_VERDICT_LIMITED;
}

/* ---- a process ---- */

enum spulse_verdict perf_process_look_owner(const struct perf_look *look, struct strbuf *value,
					    struct strbuf *advice)
{
	uid_t user, folder, own = geteuid();
	int r = perf_sys->owners(look->pid, &user, &folder);

	if (r < 0) {
		strbuf_printf(value, "unreadable (%s)", perf_errno_name(r));
		return SPULSE_VERDICT_UNKNOWN;
	}
	strbuf_printf(value, "user %u", user);
	if (user == own || perf_may(CAP_PERFMON))
		return SPULSE_VERDICT_OK;
	strbuf_printf(value, ", and we are user %u", own);
	strbuf_puts(advice, "run as that user or with CAP_PERFMON");
	return SPULSE_VERDICT_REFUSED;
}

/* Whose process it is, where nothing else refuses an open. */
static bool may_be_the_target(const struct perf_failure *f, uid_t *user, uid_t *folder)
{
	return perf_is_denied(f) && !perf_may(CAP_PERFMON) && !perf_explain_paranoid(f) &&
	       f->tid != -1 && perf_sys->owners(f->pid, user, folder) == 0;
}

bool perf_process_explain_owner(const struct perf_failure *f)
{
	uid_t user, folder;

	return may_be_the_target(f, &user, &folder) && user != geteuid();
}

enum spulse_verdict perf_process_look_dumpable(const struct perf_look *look, struct strbuf *value,
					       struct strbuf *advice)
{
	uid_t user, folder;
	int r = perf_sys->owners(look->pid, &user, &folder);

	if (r < 0) {
		strbuf_printf(value, "unreadable (%s)", perf_errno_name(r));
		return SPULSE_VERDICT_UNKNOWN;
	}
	strbuf_puts(value, folder == user ? "yes" : "not dumpable");
	if (folder == user || perf_may(CAP_PERFMON))
		return SPULSE_VERDICT_OK;
	strbuf_puts(value, ": it changed its user or called prctl(PR_SET_DUMPABLE, 0)");
	strbuf_puts(advice, "run with CAP_PERFMON");
	return SPULSE_VERDICT_REFUSED;
}

bool perf_process_explain_dumpable(const struct perf_failure *f)
{
	uid_t user, folder;

	return may_be_the_target(f, &user, &folder) && user == geteuid() && folder != user;
}

enum spulse_verdict perf_process_look_maps(const struct perf_look *look, struct strbuf *value,
					   struct strbuf *advice)
{
	char path[32];
	int r;

	snprintf(path, sizeof(path), "/proc/%d/maps", look->pid);
	r = perf_sys->open_file(path);
	if (r >= 0) {
		strbuf_puts(value, "readable");
		return SPULSE_VERDICT_OK;
	}
	strbuf_printf(value, "unreadable (%s): its frames would be addresses without a file",
		      perf_errno_name(r));
	strbuf_puts(advice, "run as the user of the process, or give CAP_SYS_PTRACE");
	return SPULSE_VERDICT_LIMITED;
}

enum spulse_verdict perf_process_look_sampling(const struct perf_look *look, struct strbuf *value,
					       struct strbuf *advice)
{
	int r = perf_try(PERF_TRY_PLAIN, look->pid);

	if (r == 0) {
		strbuf_printf(value, "%d can be sampled", look->pid);
		return SPULSE_VERDICT_OK;
	}
	strbuf_printf(value, "%d cannot be sampled (%s)", look->pid, perf_errno_name(r));
	strbuf_puts(advice, "see the other lines");
	return SPULSE_VERDICT_REFUSED;
}
