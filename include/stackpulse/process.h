/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef STACKPULSE_PROCESS_H
#define STACKPULSE_PROCESS_H

#include <stackpulse/common.h>

/**
 * @file
 * Processes: is one alive, which are its descendants, and starting one that waits before its
 * execve so that it can be recorded from its first instruction. Every call checks its ids; an id
 * outside of Linux's range (1 to 2^31-1) is INVALID_INPUT. A handle is used by one thread at a
 * time; different handles are independent.
 */

struct spulse_recorder;
struct spulse_launch;
struct spulse_exit_watcher;

/** Whether a watched process runs. */
enum spulse_exit_state {
	/** It runs (or is stopped). */
	SPULSE_EXIT_STATE_RUNNING = 0,
	/** It ended; a zombie counts as ended. Never changes back. */
	SPULSE_EXIT_STATE_EXITED = 1,
};

/** One parent-child relation. */
struct spulse_process_edge {
	/** The parent's process id. */
	pid_t parent;
	/** The child's process id. */
	pid_t child;
};

/** How to start a program. */
struct spulse_launch_options {
	/** sizeof this struct, as the caller knows it. */
	size_t size;
	/**
	 * NULL-terminated "NAME=VALUE" strings that replace or add to the caller's environment; a
	 * later one wins over an earlier one. NULL: the environment as it is.
	 */
	const char *const *overrides;
};

SPULSE_BEGIN_DECLS

/**
 * Makes @p options all-zero, which is the default, but for their size: what SPULSE_OPTS() does, for
 * languages that cannot use that. @p size is sizeof the struct as the caller knows it.
 */
SPULSE_API void spulse_launch_options_init(struct spulse_launch_options *options, size_t size);

/** Whether @p pid can name a Linux process: 1 to 2^31-1. */
SPULSE_API bool spulse_pid_valid(int64_t pid);
/** Whether @p tid can name a Linux thread: 1 to 2^31-1. */
SPULSE_API bool spulse_tid_valid(int64_t tid);

/**
 * Lists all living descendants of @p pid, a parent before its children, without @p pid itself.
 * Best effort: the tree changes while it is read; none for a process that is gone. Free the array
 * with spulse_array_free().
 */
SPULSE_API int spulse_children_discover(pid_t pid, pid_t **pids_out, size_t *count_out,
					struct spulse_error **err);
/** As spulse_children_discover(), as pairs. Free the array with spulse_array_free(). */
SPULSE_API int spulse_children_discover_edges(pid_t pid, struct spulse_process_edge **edges_out,
					      size_t *count_out, struct spulse_error **err);

/** Whether /proc knows @p pid (1 or 0). A zombie exists. */
SPULSE_API int spulse_process_exists(pid_t pid, struct spulse_error **err);
/**
 * Whether @p pid is alive (1 or 0); a zombie is not. With @p watcher (which must be of @p pid) a
 * reused process id is not mistaken for the old process.
 */
SPULSE_API int spulse_process_is_alive(struct spulse_exit_watcher *watcher, pid_t pid,
				       struct spulse_error **err);
/** Sends SIGINT. TARGET_GONE when there is no such process. */
SPULSE_API int spulse_process_interrupt(pid_t pid, struct spulse_error **err);
/** Sends SIGKILL. TARGET_GONE when there is no such process. */
SPULSE_API int spulse_process_kill(pid_t pid, struct spulse_error **err);

/** Watches @p pid until it ends. TARGET_GONE when there is no such process. */
SPULSE_API int spulse_exit_watcher_new(pid_t pid, struct spulse_exit_watcher **watcher_out,
				       struct spulse_error **err);
/** Looks without waiting. */
SPULSE_API int spulse_exit_watcher_poll(struct spulse_exit_watcher *watcher,
					enum spulse_exit_state *state_out,
					struct spulse_error **err);
/**
 * Sends @p signal to the watched process, never to a later one of its number. TARGET_GONE when it
 * ended, PERMISSION when it belongs to another user, INVALID_INPUT when there is no such signal.
 */
SPULSE_API int spulse_exit_watcher_signal(struct spulse_exit_watcher *watcher, int signal,
					  struct spulse_error **err);
/** A descriptor that becomes readable when the process ended; -1 without pidfd. Borrowed. */
SPULSE_API int spulse_exit_watcher_fd(const struct spulse_exit_watcher *watcher);
/** Frees @p watcher; NULL is allowed. */
SPULSE_API void spulse_exit_watcher_free(struct spulse_exit_watcher *watcher);
SPULSE_DEFINE_CLEANUP(exit_watcher)

/**
 * Forks a child that waits before it executes @p argv (searched in PATH like a shell does).
 * INVALID_INPUT for an empty argv. The child keeps the caller's descriptors, directory and
 * signal mask; SIGPIPE and SIGXFSZ are set to their defaults.
 */
SPULSE_API int spulse_launch_new(const char *const *argv, const struct spulse_launch_options *opts,
				 struct spulse_launch **launch_out, struct spulse_error **err);
/** The child's process id, before and after its execve. */
SPULSE_API pid_t spulse_launch_pid(const struct spulse_launch *launch);
/**
 * Lets the child execute its program and waits until it did. PROCESS_LAUNCH with the program's
 * errno when that fails; the child is reaped then. With @p recorder (may be NULL) such a failure
 * also ends the recorder's tail. A second run is INVALID_INPUT.
 */
SPULSE_API int spulse_launch_run(struct spulse_launch *launch, struct spulse_recorder *recorder,
				 struct spulse_error **err);
/** Returns 1 and the wait status (see wait(2)) when the child ended, 0 while it runs. */
SPULSE_API int spulse_launch_try_wait(struct spulse_launch *launch, int *status_out,
				      struct spulse_error **err);
/** Waits until the child ended. May be repeated; the status stays. */
SPULSE_API int spulse_launch_wait(struct spulse_launch *launch, int *status_out,
				  struct spulse_error **err);
/** Sends SIGKILL to the child unless it was reaped. */
SPULSE_API int spulse_launch_kill(struct spulse_launch *launch, struct spulse_error **err);
/**
 * Frees @p launch; NULL is allowed. A child that was never run is killed and reaped; one that
 * runs goes on.
 */
SPULSE_API void spulse_launch_free(struct spulse_launch *launch);
SPULSE_DEFINE_CLEANUP(launch)

SPULSE_END_DECLS

#endif
