/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_PERF_CHECKS_H
#define SPULSE_PERF_CHECKS_H

#include <stackpulse/doctor.h>

#include "live.h"

/* Shared inside the room only: the table behind the doctor and the texts of failures. */

/* Who looks: the doctor, or whoever explains a failure. */
struct perf_look {
	pid_t pid; /* 0: no process in particular */
	const struct perf_failure *failure; /* NULL: nothing failed, everything is of interest */
};

/* How it stands: its present value, and what changes it for the better as "run ...". */
typedef enum spulse_verdict perf_look_fn(const struct perf_look *look, struct strbuf *value,
					 struct strbuf *advice);
/* Whether it is a reason of a failure. */
typedef bool perf_explains_fn(const struct perf_failure *failure);

struct perf_check {
	const char *name;   /* stable */
	const char *called; /* in a message; NULL: the name */
	bool of_process;  /* only with a process */
	perf_look_fn *look;
	perf_explains_fn *explains; /* NULL: never */
};

/* In the order of the doctor's report. */
extern const struct perf_check perf_checks[];
extern const size_t perf_check_count;

/* ---- what the rows share ---- */

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif

enum perf_trial {
	PERF_TRY_PLAIN,	   /* user mode, CPU clock */
	PERF_TRY_LOSSES,   /* the same with a counter of losses */
	PERF_TRY_CYCLES,
	PERF_TRY_KERNEL,
	PERF_TRY_SWITCHES, /* for blocked time */
	PERF_TRY_EVERYONE, /* every process */
};
/* Opens such an event, disabled, and closes it again: 0 or -errno. pid 0 is this process. */
int perf_try(enum perf_trial trial, pid_t pid);
/* Has the capability, or the one that stands for all of them. */
bool perf_may(int capability);
/* A refused open, not a refused ring. */
bool perf_is_denied(const struct perf_failure *failure);
const char *perf_errno_name(int r);
enum spulse_verdict perf_unreadable(struct strbuf *value);
perf_explains_fn perf_explain_paranoid;

/* ---- rows of checklimits.c ---- */

perf_look_fn perf_limits_look_mlock, perf_limits_look_memlock, perf_limits_look_address_space,
	perf_limits_look_descriptors, perf_limits_look_file_max, perf_limits_look_ptrace,
	perf_process_look_owner, perf_process_look_dumpable, perf_process_look_maps,
	perf_process_look_sampling;
perf_explains_fn perf_limits_explain_locking, perf_limits_explain_address_space,
	perf_limits_explain_descriptors, perf_limits_explain_file_max, perf_process_explain_owner,
	perf_process_explain_dumpable;

#endif
