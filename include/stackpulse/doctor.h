/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef STACKPULSE_DOCTOR_H
#define STACKPULSE_DOCTOR_H

#include <stackpulse/common.h>

/**
 * @file
 * What this machine permits a recorder to do, and what to change where it does not. A report is
 * used by one thread at a time; different reports are independent.
 */

struct spulse_doctor_report;

/** How a check went. */
enum spulse_verdict {
	/** It could not be found out. */
	SPULSE_VERDICT_UNKNOWN = 0,
	/** Nothing stands in the way. */
	SPULSE_VERDICT_OK = 1,
	/** Recording works, but less is possible than could be. */
	SPULSE_VERDICT_LIMITED = 2,
	/** It refuses to record. */
	SPULSE_VERDICT_REFUSED = 3,
};

/** One check. */
struct spulse_doctor_check {
	/** What was looked at, such as "perf_event_paranoid"; stable. */
	const char *name;
	/** Its present value, for people. */
	const char *value;
	/** What changes it for the better; empty when there is nothing to do. */
	const char *advice;
	/** enum spulse_verdict. */
	uint32_t verdict;
	/** 0. */
	uint32_t unused;
};

SPULSE_BEGIN_DECLS

/** Name of a verdict: "ok", "limited", "refused", else "unknown". */
SPULSE_API const char *spulse_verdict_name(enum spulse_verdict verdict);

/**
 * Checks this machine and, when @p pid is not 0, whether that process can be recorded. Nothing is
 * changed and the process is not disturbed. TARGET_GONE when there is no such process,
 * INVALID_INPUT for an id that no process can have, NO_MEMORY.
 */
SPULSE_API int spulse_doctor(pid_t pid, struct spulse_doctor_report **report_out,
			     struct spulse_error **err);
/** The checks, in a fixed order; valid until @p report is freed. */
SPULSE_API const struct spulse_doctor_check *
spulse_doctor_report_checks(const struct spulse_doctor_report *report, size_t *count_out);
/** The worst verdict of all checks. */
SPULSE_API enum spulse_verdict
spulse_doctor_report_verdict(const struct spulse_doctor_report *report);
/** Frees @p report; NULL is allowed. */
SPULSE_API void spulse_doctor_report_free(struct spulse_doctor_report *report);
SPULSE_DEFINE_CLEANUP(doctor_report)

SPULSE_END_DECLS

#endif
