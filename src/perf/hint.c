/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Why an event could not be opened: the call, what it was about, the errno, and the settings that
 * explain it, with their present values and the changes that help. Never a guess: where nothing
 * explains it, the text says so.
 */
#include <errno.h>

#include "checks.h"

/* What an errno is, and what it means by itself, where no setting explains it. */
static const struct meaning {
	int errnum;
	enum spulse_error_kind kind;
	const char *text, *mapping_text; /* NULL: the same */
} meanings[] = {
	{ EACCES, SPULSE_ERROR_PERMISSION, "no setting explains it", NULL },
	{ EPERM, SPULSE_ERROR_PERMISSION, "no setting explains it", NULL },
	{ EMFILE, SPULSE_ERROR_IO, "no descriptor is left", NULL },
	{ ENFILE, SPULSE_ERROR_IO, "the machine's table of open files is full", NULL },
	{ ENOMEM, SPULSE_ERROR_NO_MEMORY, "the kernel has no memory", "no memory for the ring" },
	{ ESRCH, SPULSE_ERROR_TARGET_GONE, "the process is gone", NULL },
	{ EINVAL, SPULSE_ERROR_INVALID_INPUT, "the kernel refuses these settings", NULL },
	{ ENOENT, SPULSE_ERROR_UNSUPPORTED, "this kernel lacks the event", NULL },
	{ ENODEV, SPULSE_ERROR_UNSUPPORTED, "this kernel lacks the event", NULL },
	{ ENXIO, SPULSE_ERROR_UNSUPPORTED, "this kernel lacks the event", NULL },
	{ EOPNOTSUPP, SPULSE_ERROR_UNSUPPORTED, "this kernel lacks the event", NULL },
	{ ENOSYS, SPULSE_ERROR_UNSUPPORTED, "this kernel was built without perf events", NULL },
	{ EBUSY, SPULSE_ERROR_IO, "another profiler holds the counter exclusively", NULL },
	{ EBADMSG, SPULSE_ERROR_IO, "the kernel describes a ring that makes no sense", NULL },
};

static const struct meaning *meaning_of(int errnum)
{
	static const struct meaning other = { 0, SPULSE_ERROR_IO, "no known setting explains it",
					      NULL };

	for (size_t i = 0; i < ARRAY_LEN(meanings); i++)
		if (meanings[i].errnum == errnum)
			return &meanings[i];
	return &other;
}

static enum spulse_error_kind kind_of(const struct perf_failure *f)
{
	if (f->mapping && f->errnum == ENOMEM)
		return SPULSE_ERROR_IO;
	return meaning_of(f->errnum)->kind;
}

/* What no value says. */
static void lead_in(struct strbuf *text, const struct perf_failure *f, bool denied_lock)
{
	if (denied_lock)
		strbuf_printf(text, "not even %llu KiB of ring may be locked, in memory that every "
			      "profiler of this user shares: ", (unsigned long long)f->bytes >> 10);
	else if (f->tid == -1)
		strbuf_puts(text, "recording every process is refused: ");
	else if (f->kind == PERF_KIND_SWITCH)
		strbuf_puts(text, "recording blocked time is refused: ");
}

/* An advice may begin with what it is good for. */
static const char *lead_to(size_t found, const char *advice)
{
	if (found > 1)
		return "; or ";
	return has_prefix(advice, "to ") ? "; " : "; it helps to ";
}

/* Every row of the table that explains the failure; which error it makes. */
static enum spulse_error_kind explain(struct strbuf *text, const struct perf_failure *f)
{
	const struct perf_look look = { .pid = f->pid, .failure = f };
	const struct meaning *meaning = meaning_of(f->errnum);
	enum spulse_error_kind kind = kind_of(f);
	struct strbuf advices = { 0 };
	size_t found = 0;

	for (size_t i = 0; i < perf_check_count; i++) {
		const struct perf_check *check = &perf_checks[i];
		struct strbuf value = { 0 }, advice = { 0 };

		if (!check->explains || !check->explains(f))
			continue;
		if (!found++)
			lead_in(text, f, f->mapping && kind == SPULSE_ERROR_PERMISSION);
		/* An old kernel refuses settings that are right. */
		if (f->errnum == EINVAL)
			kind = SPULSE_ERROR_UNSUPPORTED;
		check->look(&look, &value, &advice);
		strbuf_printf(text, "%s%s is %s", found > 1 ? "; " : "",
			      check->called ? check->called : check->name,
			      value.failed || !value.data ? "?" : value.data);
		if (advice.data && advice.len)
			strbuf_printf(&advices, "%s%s", lead_to(found, advice.data), advice.data);
		text->failed |= value.failed || advice.failed;
		strbuf_release(&value);
		strbuf_release(&advice);
	}
	if (!found)
		strbuf_puts(text, f->mapping && meaning->mapping_text ? meaning->mapping_text :
									meaning->text);
	if (advices.data)
		strbuf_puts(text, advices.data);
	text->failed |= advices.failed;
	strbuf_release(&advices);
	return kind;
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
