/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* The table of checks, looked at as a whole: see checks.c. */
#include <errno.h>
#include <stdlib.h>

#include "checks.h"

struct spulse_doctor_report {
	struct arena strings;
	VEC(struct spulse_doctor_check) checks;
};

static const char *keep(struct spulse_doctor_report *d, const struct strbuf *text)
{
	if (text->failed)
		return NULL;
	return arena_strndup(&d->strings, text->len ? text->data : "", text->len);
}

static int look(struct spulse_doctor_report *d, const struct perf_check *check, pid_t pid,
		struct spulse_error **err)
{
	const struct perf_look look = { .pid = pid };
	struct strbuf value = { 0 }, advice = { 0 };
	struct spulse_doctor_check result = { .name = check->name };
	bool ok;

	result.verdict = check->look(&look, &value, &advice);
	result.value = keep(d, &value);
	result.advice = keep(d, &advice);
	strbuf_release(&value);
	strbuf_release(&advice);
	ok = result.value && result.advice && vec_push(&d->checks, result);
	return ok ? 0 : err_no_memory(err);
}

static int look_at_all(struct spulse_doctor_report *d, pid_t pid, struct spulse_error **err)
{
	int r = 0;

	for (size_t i = 0; i < perf_check_count && r == 0; i++)
		if (pid || !perf_checks[i].of_process)
			r = look(d, &perf_checks[i], pid, err);
	return r;
}

static bool is_gone(pid_t pid)
{
	uid_t user, folder;
	int r = perf_sys->owners(pid, &user, &folder);

	return r == -ENOENT || r == -ESRCH;
}

int spulse_doctor(pid_t pid, struct spulse_doctor_report **report_out, struct spulse_error **err)
{
	struct spulse_doctor_report *d;
	int r;

	if (pid < 0)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "%d is no process id", pid);
	d = calloc(1, sizeof(*d));
	if (!d)
		return err_no_memory(err);
	r = look_at_all(d, pid, err);
	/* Asked for last: it may have ended in between. */
	if (r == 0 && pid && is_gone(pid))
		r = err_file(err, SPULSE_ERROR_TARGET_GONE, ESRCH, NULL,
			     "there is no process %d", pid);
	if (r < 0)
		spulse_doctor_report_free(d);
	else
		*report_out = d;
	return r;
}

const struct spulse_doctor_check *
spulse_doctor_report_checks(const struct spulse_doctor_report *report, size_t *count_out)
{
	*count_out = report->checks.len;
	return report->checks.data;
}

enum spulse_verdict spulse_doctor_report_verdict(const struct spulse_doctor_report *report)
{
	uint32_t worst = SPULSE_VERDICT_OK;

	for (size_t i = 0; i < report->checks.len; i++)
		worst = MAX(worst, report->checks.data[i].verdict);
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
	vec_free(&report->checks);
	arena_release(&report->strings);
	free(report);
}
