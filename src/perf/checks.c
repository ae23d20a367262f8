/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Every setting, limit and right that can refuse or limit a recording: its present value, how it
 * stands, what changes it for the better, and which failures it explains. The doctor shows the
 * table, and the text of a failure is made of the rows that explain it.
 */
#include "checks.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/utsname.h>
#include <unistd.h>

static const char *const paranoid_path = "/proc/sys/kernel/perf_event_paranoid";

bool perf_may(int capability)
{
	return perf_sys->capable(capability) || perf_sys->capable(CAP_SYS_ADMIN);
}

bool perf_is_denied(const struct perf_failure *f)
{
	return !f->mapping && (f->errnum == EACCES || f->errnum == EPERM);
}

enum spulse_verdict perf_unreadable(struct strbuf *value)
{
	strbuf_puts(value, "unreadable");
	return SPULSE_VERDICT_UNKNOWN;
}

/* ---- trying ---- */

/* Opens a disabled event and closes it again: 0 or -errno. */
int perf_try(enum perf_trial trial, pid_t pid)
{
	bool switches = trial == PERF_TRY_SWITCHES;
	struct perf_event_attr attr = {
		.type = trial == PERF_TRY_CYCLES ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE,
		.size = PERF_ATTR_SIZE_VER5,
		.config = trial == PERF_TRY_CYCLES ? PERF_COUNT_HW_CPU_CYCLES :
			  switches ? PERF_COUNT_SW_CONTEXT_SWITCHES : PERF_COUNT_SW_CPU_CLOCK,
		.disabled = 1,
		.sample_period = 1000000,
		.exclude_kernel = trial != PERF_TRY_KERNEL && !switches,
		.read_format = trial == PERF_TRY_PLAIN ? 0 : PERF_FORMAT_LOST,
	};
	bool everyone = trial == PERF_TRY_EVERYONE;
	int fd = perf_sys->open(&attr, everyone ? -1 : pid, everyone ? 0 : -1, -1,
				PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return fd;
	perf_sys->close(fd);
	return 0;
}

const char *perf_errno_name(int r)
{
	const char *name = strerrorname_np(-r);

	return name ? name : "?";
}

/* ---- the machine ---- */

/* Whether this kernel does not know PERF_FORMAT_LOST, which came with Linux 6.0. */
static bool kernel_is_too_old(void)
{
	return perf_try(PERF_TRY_PLAIN, 0) == 0 && perf_try(PERF_TRY_LOSSES, 0) == -EINVAL;
}

static enum spulse_verdict look_kernel(const struct perf_look *look, struct strbuf *value,
				       struct strbuf *advice)
{
	struct utsname name;

	(void)look;
	strbuf_puts(value, uname(&name) < 0 ? "?" : name.release);
	if (!kernel_is_too_old())
		return SPULSE_VERDICT_OK;
	strbuf_puts(value, ", which cannot count lost samples");
	strbuf_puts(advice, "use Linux 6.0 or later");
	return SPULSE_VERDICT_REFUSED;
}

static bool kernel_explains(const struct perf_failure *f)
{
	return f->errnum == EINVAL && !f->mapping && kernel_is_too_old();
}

static const char allow_open[] = "allow perf_event_open in the security module or in the seccomp "
				 "filter of the container that refuses it";

static void put_unexplained(struct strbuf *value)
{
	int64_t now;

	strbuf_puts(value, " though ");
	if (perf_sys->read_number(paranoid_path, &now) == 0)
		strbuf_printf(value, "perf_event_paranoid is %lld and ", (long long)now);
	strbuf_puts(value, "the process is ours");
}

static enum spulse_verdict look_open(const struct perf_look *look, struct strbuf *value,
				     struct strbuf *advice)
{
	int r = look->failure ? -look->failure->errnum : perf_try(PERF_TRY_PLAIN, 0);

	if (r == 0) {
		strbuf_puts(value, "permitted");
		return SPULSE_VERDICT_OK;
	}
	strbuf_printf(value, r == -ENOSYS ? "missing (%s)" : "refused (%s)", perf_errno_name(r));
	if (look->failure && perf_may(CAP_PERFMON))
		strbuf_puts(value, " though we have CAP_PERFMON");
	else if (look->failure && r != -ENOSYS)
		put_unexplained(value);
	if (r == -ENOSYS)
		strbuf_puts(advice, "use a kernel that was built with perf events");
	else if (look->failure || perf_may(CAP_PERFMON))
		strbuf_puts(advice, allow_open);
	else
		strbuf_printf(advice, "look at perf_event_paranoid below, and where that permits "
			      "it %s", allow_open);
	return SPULSE_VERDICT_REFUSED;
}

/* What no setting explains is somebody else's filter. */
static bool open_explains(const struct perf_failure *f)
{
	if (f->errnum == ENOSYS)
		return true;
	return perf_is_denied(f) && !perf_explain_paranoid(f) && !perf_process_explain_owner(f) &&
	       !perf_process_explain_dumpable(f);
}

/* ---- perf_event_paranoid ---- */

/* The greatest value that permits what was refused, or the next better one. */
static int64_t paranoid_for(const struct perf_failure *f, int64_t now)
{
	if (!f)
		return MIN(now, 3) - 1;
	if (f->tid == -1)
		return 0;
	return f->kind == PERF_KIND_SWITCH ? 1 : 2;
}

static const char *paranoid_gain(const struct perf_failure *f, int64_t level)
{
	if (f && level == 1)
		return "to record blocked time ";
	if (level <= 0)
		return "to record every process ";
	return level == 1 ? "for kernel frames and blocked time " : "";
}

/* Values above 2 are an addition of some distributions: others take them for 2. */
static bool refuses_everything(int64_t now)
{
	return now >= 3 && perf_try(PERF_TRY_PLAIN, 0) < 0;
}

static enum spulse_verdict look_paranoid(const struct perf_look *look, struct strbuf *value,
					 struct strbuf *advice)
{
	bool refused;
	int64_t now, level;

	if (perf_sys->read_number(paranoid_path, &now) < 0)
		return perf_unreadable(value);
	strbuf_printf(value, "%lld", (long long)now);
	if (perf_may(CAP_PERFMON)) {
		strbuf_puts(value, " (we have CAP_PERFMON)");
		return SPULSE_VERDICT_OK;
	}
	if (now <= 0)
		return SPULSE_VERDICT_OK;
	refused = refuses_everything(now);
	if (refused)
		strbuf_puts(value, ": no use without CAP_PERFMON");
	else if (now >= 2)
		strbuf_puts(value, ": own processes, without kernel frames and blocked time");
	else
		strbuf_puts(value, ": own processes");
	level = paranoid_for(look->failure, refused ? 3 : MIN(now, 2));
	strbuf_printf(advice, "%srun \"sysctl kernel.perf_event_paranoid=%lld\", or give "
		      "CAP_PERFMON", paranoid_gain(look->failure, level), (long long)level);
	return refused ? SPULSE_VERDICT_REFUSED : SPULSE_VERDICT_LIMITED;
}

bool perf_explain_paranoid(const struct perf_failure *f)
{
	int64_t now;

	if (!perf_is_denied(f) || perf_may(CAP_PERFMON) ||
	    perf_sys->read_number(paranoid_path, &now) < 0)
		return false;
	return now > paranoid_for(f, now) && (now < 3 || f->tid == -1 ||
					      f->kind == PERF_KIND_SWITCH ||
					      refuses_everything(now));
}

static enum spulse_verdict look_perfmon(const struct perf_look *look, struct strbuf *value,
					struct strbuf *advice)
{
	int64_t now;
	bool needed = perf_sys->read_number(paranoid_path, &now) < 0 || now > 0;

	(void)look;
	if (perf_sys->capable(CAP_PERFMON)) {
		strbuf_puts(value, "held");
		return SPULSE_VERDICT_OK;
	}
	if (perf_sys->capable(CAP_SYS_ADMIN)) {
		strbuf_puts(value, "CAP_SYS_ADMIN is held");
		return SPULSE_VERDICT_OK;
	}
	strbuf_puts(value, needed ? "not held" : "not held, and not needed");
	if (!needed)
		return SPULSE_VERDICT_OK;
	strbuf_puts(advice, "run as root, or \"setcap cap_perfmon,cap_sys_ptrace+ep FILE\" on the "
			    "recording program");
	return SPULSE_VERDICT_LIMITED;
}

/* ---- what an event may do ---- */

static enum spulse_verdict look_sampling(const struct perf_look *look, struct strbuf *value,
					 struct strbuf *advice)
{
	int r = look->failure ? -look->failure->errnum : perf_try(PERF_TRY_CYCLES, 0);
	int clock = perf_try(PERF_TRY_PLAIN, 0);

	if (r == 0) {
		strbuf_puts(value, "cycles");
	} else if (look->failure) {
		strbuf_printf(value, "no hardware cycle counter (%s), as in many virtual machines",
			      perf_errno_name(r));
		strbuf_puts(advice, "record with the CPU clock");
	} else if (clock == 0) {
		strbuf_printf(value, "cpu-clock (cycles: %s)", perf_errno_name(r));
	} else {
		strbuf_puts(value, "none");
		strbuf_puts(advice, "see perf_event_open");
		return SPULSE_VERDICT_REFUSED;
	}
	return SPULSE_VERDICT_OK;
}

static bool sampling_explains(const struct perf_failure *f)
{
	return !f->mapping && !f->software && (f->errnum == ENOENT || f->errnum == ENODEV ||
					       f->errnum == ENXIO || f->errnum == EOPNOTSUPP);
}

static enum spulse_verdict permitted(enum perf_trial trial, int level, struct strbuf *value,
				     struct strbuf *advice)
{
	int r = perf_try(trial, 0);

	if (r == 0) {
		strbuf_puts(value, "permitted");
		return SPULSE_VERDICT_OK;
	}
	strbuf_printf(value, "refused (%s)", perf_errno_name(r));
	if (perf_may(CAP_PERFMON))
		strbuf_puts(advice, allow_open);
	else
		strbuf_printf(advice, "run \"sysctl kernel.perf_event_paranoid=%d\", or give "
			      "CAP_PERFMON", level);
	return SPULSE_VERDICT_LIMITED;
}

static enum spulse_verdict look_kernel_frames(const struct perf_look *look, struct strbuf *value,
					      struct strbuf *advice)
{
	(void)look;
	return permitted(PERF_TRY_KERNEL, 1, value, advice);
}

static enum spulse_verdict look_blocked_time(const struct perf_look *look, struct strbuf *value,
					     struct strbuf *advice)
{
	(void)look;
	return permitted(PERF_TRY_SWITCHES, 1, value, advice);
}

static enum spulse_verdict look_every_process(const struct perf_look *look, struct strbuf *value,
					      struct strbuf *advice)
{
	(void)look;
	return permitted(PERF_TRY_EVERYONE, 0, value, advice);
}

static enum spulse_verdict look_kptr(const struct perf_look *look, struct strbuf *value,
				     struct strbuf *advice)
{
	int64_t now;

	(void)look;
	if (perf_sys->read_number("/proc/sys/kernel/kptr_restrict", &now) < 0)
		return perf_unreadable(value);
	strbuf_printf(value, "%lld", (long long)now);
	if (now <= 0 || (now == 1 && perf_sys->capable(CAP_SYSLOG)))
		return SPULSE_VERDICT_OK;
	strbuf_puts(value, ": kernel addresses are hidden");
	strbuf_puts(advice, "for the names of kernel frames run \"sysctl kernel.kptr_restrict=0\"");
	return SPULSE_VERDICT_LIMITED;
}

static enum spulse_verdict look_rate(const struct perf_look *look, struct strbuf *value,
				     struct strbuf *advice)
{
	int64_t rate;

	(void)look;
	if (perf_sys->read_number("/proc/sys/kernel/perf_event_max_sample_rate", &rate) < 0)
		return perf_unreadable(value);
	strbuf_printf(value, "%lld Hz", (long long)rate);
	if (rate >= 1000)
		return SPULSE_VERDICT_OK;
	strbuf_puts(value, ": the kernel lowered it under load");
	strbuf_puts(advice, "run \"sysctl kernel.perf_event_max_sample_rate=100000\", or ask for "
			    "fewer samples");
	return SPULSE_VERDICT_LIMITED;
}

const struct perf_check perf_checks[] = {
	{ "kernel", NULL, false, look_kernel, kernel_explains },
	{ "perf_event_open", NULL, false, look_open, open_explains },
	{ "perf_event_paranoid", NULL, false, look_paranoid, perf_explain_paranoid },
	{ "CAP_PERFMON", NULL, false, look_perfmon, NULL },
	{ "sampling-event", "the sampling event", false, look_sampling, sampling_explains },
	{ "kernel-frames", NULL, false, look_kernel_frames, NULL },
	{ "blocked-time", NULL, false, look_blocked_time, NULL },
	{ "every-process", NULL, false, look_every_process, NULL },
	{ "kptr_restrict", NULL, false, look_kptr, NULL },
	{ "perf_event_max_sample_rate", NULL, false, look_rate, NULL },
	{ "perf_event_mlock_kb", NULL, false, perf_limits_look_mlock, perf_limits_explain_locking },
	{ "RLIMIT_MEMLOCK", NULL, false, perf_limits_look_memlock, perf_limits_explain_locking },
	{ "RLIMIT_AS", NULL, false, perf_limits_look_address_space,
	  perf_limits_explain_address_space },
	{ "RLIMIT_NOFILE", NULL, false, perf_limits_look_descriptors,
	  perf_limits_explain_descriptors },
	{ "file-max", NULL, false, perf_limits_look_file_max, perf_limits_explain_file_max },
	{ "ptrace_scope", NULL, false, perf_limits_look_ptrace, NULL },
	{ "owner", "the owner of the process", true, perf_process_look_owner,
	  perf_process_explain_owner },
	{ "dumpable", "the process", true, perf_process_look_dumpable,
	  perf_process_explain_dumpable },
	{ "maps", NULL, true, perf_process_look_maps, NULL },
	{ "process", NULL, true, perf_process_look_sampling, NULL },
};
const size_t perf_check_count = ARRAY_LEN(perf_checks);
