/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * proc: what the kernel says of a process: /proc parsing, mappings, threads, children, pidfd
 * identity and liveness, stop and resume, suspended launch.
 * Owns process handles and stopped targets. Never samples, never reads ELF, never keeps policy.
 */
#ifndef SPULSE_PROC_H
#define SPULSE_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../base/base.h"

#include <stackpulse/process.h>

/* ---- mappings ---- */

struct proc_map {
	uint64_t start, end, offset, inode;
	uint32_t dev_major, dev_minor;
	bool exec;
	const char *path; /* bytes, NUL-terminated, "" for unnamed; lives as long as the maps */
	size_t path_len;
};

struct proc_maps {
	VEC(struct proc_map) maps; /* as in the file: ascending */
	struct strbuf text;
};

/* Parses the text of a maps file; malformed lines are skipped. False when memory ran out. */
bool proc_maps_parse(struct proc_maps *maps, const char *text, size_t len);
/* Reads /proc/PID/maps. TARGET_GONE, PERMISSION, IO. */
int proc_maps_read(struct proc_maps *maps, pid_t pid, struct spulse_error **err);
void proc_maps_release(struct proc_maps *maps);

/* ---- facts of one process ---- */

struct proc_stat {
	char state;
	pid_t ppid;
	uint64_t threads;
	uint64_t start_time; /* clock ticks after boot */
};

/* tid 0: the process's own stat. Returns 0 or -errno. */
int proc_stat_read(pid_t pid, pid_t tid, struct proc_stat *stat);
/* Parses one stat line; names may hold anything. */
bool proc_stat_parse(const char *text, size_t len, struct proc_stat *stat);
/* Thread-group id of a thread; 0 or -errno. */
int proc_tgid_read(pid_t tid, pid_t *tgid);
/* Process that traces a thread, 0 = none; 0 or -errno. */
int proc_tracer_read(pid_t pid, pid_t tid, pid_t *tracer);
/* A number from a "Label:" line of the status file; 0 or -errno. */
int proc_status_number(pid_t pid, pid_t tid, const char *label, pid_t *value);
/* (device, inode) of /proc/PID/exe; 0 or -errno. */
int proc_exe_identity(pid_t pid, uint64_t *device, uint64_t *inode);
/* Small files below /proc/PID (or its task/TID): "comm" without its line end, "cmdline",
 * "environ"; raw bytes; 0 or -errno. */
int proc_file_read(pid_t pid, pid_t tid, const char *name, size_t max, struct strbuf *sb);
/* Thread ids of a process, ascending; 0 or -errno. */
struct proc_tids {
	VEC(pid_t) tids;
};
int proc_threads(pid_t pid, struct proc_tids *tids);
/* Online CPU numbers, ascending. */
struct proc_cpus {
	VEC(uint32_t) cpus;
};
int proc_online_cpus(struct proc_cpus *cpus, struct spulse_error **err);

/* ---- identity and liveness ---- */

struct proc_handle; /* pidfd, or the start time where there is none */
int proc_handle_open(pid_t pid, struct proc_handle **handle_out, struct spulse_error **err);
pid_t proc_handle_pid(const struct proc_handle *handle);
int proc_handle_fd(const struct proc_handle *handle); /* pidfd or -1 */
/* 1 ended (a zombie counts), 0 alive, or an error. Sticky. */
int proc_handle_exited(struct proc_handle *handle, struct spulse_error **err);
/* Sends a signal to this very process; 0 or -errno. */
int proc_handle_signal(struct proc_handle *handle, int signal);
void proc_handle_free(struct proc_handle *handle);
/* Asks many at once with one poll(2): exited[i] is set. */
int proc_handles_exited(struct proc_handle *const *handles, size_t n, bool *exited,
			struct spulse_error **err);

/* ---- stop ---- */

/*
 * Stops a process for a moment. The target runs on when the stopper is released, or when this
 * process dies. A target that is stopped or traced already is left alone: outcome says so.
 */
enum proc_stop_outcome {
	PROC_STOP_DONE,		/* stopped by us */
	PROC_STOP_FOREIGN,	/* stopped by someone else already: nothing was sent */
	PROC_STOP_TRACED,	/* a tracer holds it: nothing was sent */
	PROC_STOP_FAILED,	/* could not be stopped in time or is not permitted: it runs */
};
struct proc_stop;
int proc_stop_begin(struct proc_handle *handle, struct proc_stop **stop_out,
		    enum proc_stop_outcome *outcome_out, struct spulse_error **err);
/* Thread ids while stopped, ascending; valid for PROC_STOP_DONE and PROC_STOP_FOREIGN. */
const pid_t *proc_stop_tids(const struct proc_stop *stop, size_t *count);
/* Why it was not stopped, for a log line; "" when it was. */
const char *proc_stop_reason(const struct proc_stop *stop);
/* Resumes; 0 or an error. Idempotent. By the thread that began it, which has real-time priority
 * meanwhile, where it may. */
int proc_stop_end(struct proc_stop *stop, struct spulse_error **err);
void proc_stop_free(struct proc_stop *stop); /* resumes too */

/* ---- launch ---- */

/*
 * What a recorder does when the program that it waits for cannot be executed: set once by the
 * room that owns recorders, called by spulse_launch_run() with its recorder and the failure.
 */
typedef void (*proc_launch_failed_fn)(struct spulse_recorder *recorder,
				      struct spulse_error *error);
void proc_launch_set_failed_hook(proc_launch_failed_fn fn);

#endif
