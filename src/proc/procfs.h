/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_PROC_PROCFS_H
#define SPULSE_PROC_PROCFS_H

#include "proc.h"

/* Shared inside the room only. */

enum { PROC_PATH_MAX = 4096 };

/* "/proc"; a test may point it at a made-up tree. */
extern const char *proc_root;

/* ROOT/PID[/task/TID]/NAME; tid 0: none. Always terminated. */
void proc_path(char path[PROC_PATH_MAX], pid_t pid, pid_t tid, const char *name);

/* The error for a /proc file of a process that could not be read: TARGET_GONE, PERMISSION with
 * what would help, or IO. */
int proc_read_error(struct spulse_error **err, int errnum, pid_t pid, const char *path);

/* All-digit directory names below `path`, ascending; 0 or -errno. */
int proc_list_numbers(const char *path, struct proc_tids *numbers);

/* A list such as "0-3,8", ascending; false when it is empty or malformed. */
bool proc_parse_cpu_list(const char *text, struct proc_cpus *cpus);
/* The cpuN lines of /proc/stat. */
bool proc_parse_stat_cpus(const char *text, struct proc_cpus *cpus);

int proc_pidfd_open(pid_t pid);
int proc_pidfd_signal(int pidfd, int signal);

#endif
