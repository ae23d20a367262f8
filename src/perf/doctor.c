/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Every setting that can refuse or limit a recording, with its present value and what helps. */
#include <errno.h>
#include <linux/capability.h>
#include <sys/utsname.h>

#include <stackpulse/doctor.h>

#include "live.h"

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif

enum { CHECKS_MAX = 16 };

struct spulse_doctor_report {
	struct arena strings;
	struct spulse_doctor_check checks[CHECKS_MAX];
	size_t count;
	bool no_memory;
};

static void add(struct spulse_doctor_report *d, const char *name, enum spulse_verdict verdict,
		const char *advice, const char *format, ...) SPULSE_PRINTF(5, 6);

static void add(struct spulse_doctor_report *d, const char *name, enum spulse_verdict verdict,
		const char *advice, const char *format, ...)
{
	struct spulse_doctor_check *check = &d->checks[d->count++];
	struct strbuf text = { 0 };
	va_list args;

	va_start(args, format);
	strbuf_vprintf(&text, format, args);
	va_end(args);
	*check = (struct spulse_doctor_check){ .name = name, .verdict = verdict };
	check->value = text.failed ? NULL : arena_strndup(&d->strings, text.data, text.len);
	check->advice = arena_strndup(&d->strings, advice, strlen(advice));
	d->no_memory |= !check->value || !check->advice;
	strbuf_release(&text);
}

static bool may(int capability)
{
	return perf_sys->capable(capability) || perf_sys->capable(CAP_SYS_ADMIN);
}

/* Opens a disabled event and closes it again: 0 or -errno. */
static int try_event(uint32_t type, uint64_t config, bool kernel, bool losses, pid_t pid)
{
	struct perf_event_attr attr = {
		.type = type,
		.size = PERF_ATTR_SIZE_VER5,
		.config = config,
		.disabled = 1,
		.sample_period = 1000000,
		.exclude_kernel = !kernel,
		.read_format = losses ? PERF_FORMAT_LOST : 0,
	};
	int fd = perf_sys->open(&attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return fd;
	perf_sys->close(fd);
	return 0;
}

static int try_clock(bool kernel, bool losses, pid_t pid)
{
	return try_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, kernel, losses, pid);
}

static const char *errno_name(int r)
{
	const char *name = strerrorname_np(-r);

	return name ? name : "?";
}

/* ---- the machine ---- */

static void check_kernel(struct spulse_doctor_report *d)
{
	struct utsname name;
	int plain = try_clock(false, false, 0), losses = try_clock(false, true, 0);

	if (uname(&name) < 0)
		strcpy(name.release, "?");
	if (plain == 0 && losses == -EINVAL)
		add(d, "kernel", SPULSE_VERDICT_REFUSED, "Linux 6.0 or later is needed: this one "
		    "cannot count lost samples", "%s", name.release);
	else
		add(d, "kernel", SPULSE_VERDICT_OK, "", "%s", name.release);
}

static void check_perf_event_open(struct spulse_doctor_report *d)
{
	int r = try_clock(false, false, 0);

	if (r == 0)
		add(d, "perf_event_open", SPULSE_VERDICT_OK, "", "permitted");
	else if (r == -ENOSYS)
		add(d, "perf_event_open", SPULSE_VERDICT_REFUSED, "use a kernel with perf events",
		    "missing");
	else
		add(d, "perf_event_open", SPULSE_VERDICT_REFUSED, "see perf_event_paranoid; where "
		    "that permits it, a security module or the seccomp filter of a container "
		    "refuses it: allow perf_event_open there", "refused (%s)", errno_name(r));
}

static void check_paranoid(struct spulse_doctor_report *d)
{
	const char *name = "perf_event_paranoid";
	int64_t now;

	if (perf_sys->read_number("/proc/sys/kernel/perf_event_paranoid", &now) < 0)
		add(d, name, SPULSE_VERDICT_UNKNOWN, "", "unreadable");
	else if (may(CAP_PERFMON))
		add(d, name, SPULSE_VERDICT_OK, "", "%lld (we have CAP_PERFMON)", (long long)now);
	else if (now >= 3)
		add(d, name, SPULSE_VERDICT_REFUSED, "run \"sysctl kernel.perf_event_paranoid=2\" "
		    "or give CAP_PERFMON", "%lld: no use without CAP_PERFMON", (long long)now);
	else if (now == 2)
		add(d, name, SPULSE_VERDICT_LIMITED, "for kernel frames and blocked time run "
		    "\"sysctl kernel.perf_event_paranoid=1\", or give CAP_PERFMON",
		    "2: own processes without kernel frames");
	else if (now == 1)
		add(d, name, SPULSE_VERDICT_LIMITED, "to record every process run \"sysctl "
		    "kernel.perf_event_paranoid=0\", or give CAP_PERFMON",
		    "1: own processes, with kernel frames");
	else
		add(d, name, SPULSE_VERDICT_OK, "", "%lld", (long long)now);
}

static void check_event(struct spulse_doctor_report *d)
{
	int r = try_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, false, false, 0);

	if (r == 0)
		add(d, "sampling-event", SPULSE_VERDICT_OK, "", "cycles");
	else if (try_clock(false, false, 0) == 0)
		add(d, "sampling-event", SPULSE_VERDICT_OK, "", "cpu-clock (cycles: %s)",
		    errno_name(r));
	else
		add(d, "sampling-event", SPULSE_VERDICT_REFUSED, "see perf_event_open", "none");
}

static void check_kernel_frames(struct spulse_doctor_report *d)
{
	int r = try_clock(true, false, 0);
	int64_t hidden;

	if (r < 0)
		add(d, "kernel-frames", SPULSE_VERDICT_LIMITED, "see perf_event_paranoid",
		    "refused (%s)", errno_name(r));
	else
		add(d, "kernel-frames", SPULSE_VERDICT_OK, "", "permitted");
	if (perf_sys->read_number("/proc/sys/kernel/kptr_restrict", &hidden) < 0)
		add(d, "kptr_restrict", SPULSE_VERDICT_UNKNOWN, "", "unreadable");
	else if (hidden >= 2 || (hidden == 1 && !perf_sys->capable(CAP_SYSLOG)))
		add(d, "kptr_restrict", SPULSE_VERDICT_LIMITED, "for the names of kernel frames "
		    "run \"sysctl kernel.kptr_restrict=0\"", "%lld: kernel addresses are hidden",
		    (long long)hidden);
	else
		add(d, "kptr_restrict", SPULSE_VERDICT_OK, "", "%lld", (long long)hidden);
}

static void check_rate(struct spulse_doctor_report *d)
{
	int64_t rate;

	if (perf_sys->read_number("/proc/sys/kernel/perf_event_max_sample_rate", &rate) < 0)
		add(d, "perf_event_max_sample_rate", SPULSE_VERDICT_UNKNOWN, "", "unreadable");
	else if (rate < 1000)
		add(d, "perf_event_max_sample_rate", SPULSE_VERDICT_LIMITED, "the kernel lowered "
		    "it under load: run \"sysctl kernel.perf_event_max_sample_rate=100000\", or "
		    "ask for fewer samples", "%lld Hz", (long long)rate);
	else
		add(d, "perf_event_max_sample_rate", SPULSE_VERDICT_OK, "", "%lld Hz",
		    (long long)rate);
}

/* ---- limits ---- */

static void check_locked(struct spulse_doctor_report *d)
{
	/* What the kernel gives by itself: a ring of half a MiB and its page. */
	enum { USUAL_KB = 516 };
	bool free_of_it = may(CAP_PERFMON) || perf_sys->capable(CAP_IPC_LOCK);
	struct rlimit limit;
	int64_t kb;

	if (perf_sys->read_number("/proc/sys/kernel/perf_event_mlock_kb", &kb) < 0)
		add(d, "perf_event_mlock_kb", SPULSE_VERDICT_UNKNOWN, "", "unreadable");
	else if (kb < USUAL_KB && !free_of_it)
		add(d, "perf_event_mlock_kb", SPULSE_VERDICT_LIMITED, "rings are small and lose "
		    "samples at high rates: raise it, or RLIMIT_MEMLOCK", "%lld KiB per CPU",
		    (long long)kb);
	else
		add(d, "perf_event_mlock_kb", SPULSE_VERDICT_OK, "", "%lld KiB per CPU",
		    (long long)kb);
	if (perf_sys->get_limit(RLIMIT_MEMLOCK, &limit) < 0)
		add(d, "RLIMIT_MEMLOCK", SPULSE_VERDICT_UNKNOWN, "", "unreadable");
	else if (limit.rlim_cur == RLIM_INFINITY)
		add(d, "RLIMIT_MEMLOCK", SPULSE_VERDICT_OK, "", "unlimited");
	else
		add(d, "RLIMIT_MEMLOCK", free_of_it || limit.rlim_cur >= 32 << 20 ?
		    SPULSE_VERDICT_OK : SPULSE_VERDICT_LIMITED,
		    free_of_it || limit.rlim_cur >= 32 << 20 ? "" : "for larger rings raise it "
		    "(\"ulimit -l\", LimitMEMLOCK= of a service), or give CAP_IPC_LOCK",
		    "%llu KiB", (unsigned long long)limit.rlim_cur >> 10);
}

static void check_descriptors(struct spulse_doctor_report *d)
{
	struct rlimit limit;
	bool few;

	if (perf_sys->get_limit(RLIMIT_NOFILE, &limit) < 0) {
		add(d, "RLIMIT_NOFILE", SPULSE_VERDICT_UNKNOWN, "", "unreadable");
		return;
	}
	few = limit.rlim_max < 4096;
	add(d, "RLIMIT_NOFILE", few ? SPULSE_VERDICT_LIMITED : SPULSE_VERDICT_OK,
	    few ? "each thread needs one descriptor per CPU: raise the hard limit (\"ulimit -Hn\", "
		  "LimitNOFILE= of a service)" : "", "%llu (hard limit %llu)",
	    (unsigned long long)limit.rlim_cur, (unsigned long long)limit.rlim_max);
}

static void check_ptrace(struct spulse_doctor_report *d)
{
	int64_t scope;

	if (perf_sys->read_number("/proc/sys/kernel/yama/ptrace_scope", &scope) < 0)
		add(d, "ptrace_scope", SPULSE_VERDICT_OK, "", "none");
	else if (scope >= 3 || (scope >= 1 && !perf_sys->capable(CAP_SYS_PTRACE)))
		add(d, "ptrace_scope", SPULSE_VERDICT_LIMITED, "a running process is stopped by "
		    "SIGSTOP instead of ptrace while it is attached; \"sysctl "
		    "kernel.yama.ptrace_scope=0\" or CAP_SYS_PTRACE changes that", "%lld",
		    (long long)scope);
	else
		add(d, "ptrace_scope", SPULSE_VERDICT_OK, "", "%lld", (long long)scope);
}

/* ---- a process ---- */

static int check_process(struct spulse_doctor_report *d, pid_t pid, struct spulse_error **err)
{
	uid_t user, folder, own = geteuid();
	int r = perf_sys->owners(pid, &user, &folder);

	if (r == -ENOENT || r == -ESRCH)
		return err_file(err, SPULSE_ERROR_TARGET_GONE, ESRCH, NULL,
				"there is no process %d", pid);
	if (r < 0)
		add(d, "owner", SPULSE_VERDICT_UNKNOWN, "", "unreadable (%s)", errno_name(r));
	else if (user != own && !may(CAP_PERFMON))
		add(d, "owner", SPULSE_VERDICT_REFUSED, "run as that user or with CAP_PERFMON",
		    "user %u, and we are user %u", user, own);
	else if (folder != user && !may(CAP_PERFMON))
		add(d, "owner", SPULSE_VERDICT_REFUSED, "it changed its user or called "
		    "prctl(PR_SET_DUMPABLE, 0): run with CAP_PERFMON", "not dumpable");
	else
		add(d, "owner", SPULSE_VERDICT_OK, "", "user %u", user);
	r = try_clock(false, false, pid);
	if (r == -ESRCH)
		return err_file(err, SPULSE_ERROR_TARGET_GONE, ESRCH, NULL, "process %d ended",
				pid);
	add(d, "process", r == 0 ? SPULSE_VERDICT_OK : SPULSE_VERDICT_REFUSED,
	    r == 0 ? "" : "see the other lines", r == 0 ? "%d can be sampled" :
	    "%d cannot be sampled", pid);
	return 0;
}

int spulse_doctor(pid_t pid, struct spulse_doctor_report **report_out, struct spulse_error **err)
{
	struct spulse_doctor_report *d;
	int r = 0;

	if (pid < 0)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "%d is no process id", pid);
	d = calloc(1, sizeof(*d));
	if (!d)
		return err_no_memory(err);
	check_kernel(d);
	check_perf_event_open(d);
	check_paranoid(d);
	check_event(d);
	check_kernel_frames(d);
	check_rate(d);
	check_locked(d);
	check_descriptors(d);
	check_ptrace(d);
	if (pid)
		r = check_process(d, pid, err);
	if (r == 0 && d->no_memory)
		r = err_no_memory(err);
	if (r < 0)
		spulse_doctor_report_free(d);
	else
		*report_out = d;
	return r;
}

const struct spulse_doctor_check *
spulse_doctor_report_checks(const struct spulse_doctor_report *report, size_t *count_out)
{
	*count_out = report->count;
	return report->checks;
}

enum spulse_verdict spulse_doctor_report_verdict(const struct spulse_doctor_report *report)
{
	uint32_t worst = SPULSE_VERDICT_OK;

	for (size_t i = 0; i < report->count; i++)
		worst = MAX(worst, report->checks[i].verdict);
	return worst;
}

const char *spulse_verdict_name(enum spulse_verdict verdict)
{
	switch (verdict) {
	case SPULSE_VERDICT_OK:
		return "ok";
	case SPULSE_VERDICT_LIMITED:
		return "limited";
	case SPULSE_VERDICT_REFUSED:
		return "refused";
	default:
		return "unknown";
	}
}

void spulse_doctor_report_free(struct spulse_doctor_report *report)
{
	if (!report)
		return;
	arena_release(&report->strings);
	free(report);
}
