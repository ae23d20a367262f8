/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A child that waits on a pipe before its execve, so that its events can be opened first. A
 * second pipe, closed by a successful execve, brings the errno of a failed one back.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "procfs.h"

enum { GO_BYTE = 0x42, REPORT_LEN = 8 };
static const char report_footer[4] = { 'N', 'O', 'E', 'X' };

struct spulse_launch {
	pid_t pid;
	int go_fd;	/* write end: the child waits for a byte */
	int report_fd;	/* read end: errno of a failed execve, or EOF */
	struct proc_handle *handle; /* NULL only when it could not be opened */
	char *program;
	bool ran, reaped;
	int status;
};

static _Atomic(proc_launch_failed_fn) failed_hook;

void proc_launch_set_failed_hook(proc_launch_failed_fn fn)
{
	atomic_store(&failed_hook, fn);
}

/* ---- environment ---- */

struct variable {
	const char *text;
	size_t name_len;
	size_t order;
};

static int compare_names(const struct variable *a, const struct variable *b)
{
	int r = memcmp(a->text, b->text, MIN(a->name_len, b->name_len));

	return r ? r : (a->name_len > b->name_len) - (a->name_len < b->name_len);
}

static int compare_variables(const void *pa, const void *pb)
{
	const struct variable *a = pa, *b = pb;
	int r = compare_names(a, b);

	return r ? r : (a->order > b->order) - (a->order < b->order);
}

struct variables {
	VEC(struct variable) items;
};

static bool add_variable(struct variables *vars, const char *text)
{
	const char *equals = strchr(text, '=');
	struct variable v = {
		.text = text,
		.name_len = equals ? (size_t)(equals - text) : strlen(text),
		.order = vars->items.len,
	};

	return vec_push(&vars->items, v);
}

/* The caller's environment and the overrides, sorted by name, the last of each name. */
static int merge_environment(const char *const *overrides, char ***envp_out,
			     struct spulse_error **err)
{
	struct variables vars = { 0 };
	char **envp = NULL;
	size_t n = 0;
	bool ok = true;

	for (char **e = environ; e && *e && ok; e++)
		ok = add_variable(&vars, *e);
	for (; *overrides && ok; overrides++)
		ok = add_variable(&vars, *overrides);
	if (ok)
		envp = calloc(vars.items.len + 1, sizeof(*envp));
	if (!envp) {
		vec_free(&vars.items);
		return err_no_memory(err);
	}
	if (vars.items.len)
		qsort(vars.items.data, vars.items.len, sizeof(struct variable),
		      compare_variables);
	for (size_t i = 0; i < vars.items.len; i++)
		if (i + 1 == vars.items.len ||
		    compare_names(&vars.items.data[i], &vars.items.data[i + 1]) != 0)
			envp[n++] = (char *)vars.items.data[i].text;
	vec_free(&vars.items);
	*envp_out = envp;
	return 0;
}

/* ---- child ---- */

static void report_failure(int fd, int errnum)
{
	unsigned char report[REPORT_LEN] = {
		errnum >> 24, errnum >> 16, errnum >> 8, errnum,
	};

	memcpy(report + 4, report_footer, sizeof(report_footer));
	write_full(fd, report, sizeof(report));
}

/* Runs in the child: no allocation, no locks, nothing that returns. */
static _Noreturn void run_child(int go_fd, int report_fd, const char *const *argv, char **envp)
{
	ssize_t n;
	char byte;

	do
		n = read(go_fd, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(n == 0 ? 0 : 1);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	/* Replaced for the search too: the program is found by the PATH that it will see. */
	if (envp)
		environ = envp;
	execvp(argv[0], (char *const *)argv);
	report_failure(report_fd, errno);
	_exit(1);
}

/* ---- parent ---- */

static int check_arguments(const char *const *argv, const struct spulse_launch_options *given,
			   struct spulse_launch_options *opts, struct spulse_error **err)
{
	int r;

	if (!argv || !argv[0])
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "no program to launch");
	if (!given)
		return 0;
	r = options_read(opts, sizeof(*opts), given, "launch options", err);
	if (r < 0)
		return r;
	for (size_t i = 0; opts->overrides && opts->overrides[i]; i++) {
		const char *equals = strchr(opts->overrides[i], '=');

		if (!equals || equals == opts->overrides[i])
			return err_set(err, SPULSE_ERROR_INVALID_INPUT,
				       "environment override \"%s\" is not NAME=VALUE",
				       opts->overrides[i]);
	}
	return 0;
}

static int fork_child(struct spulse_launch *l, const char *const *argv, char **envp,
		      struct spulse_error **err)
{
	int go[2], report[2];

	if (pipe2(go, O_CLOEXEC) < 0)
		return err_io(err, errno, NULL, "cannot make a pipe to launch %s", argv[0]);
	if (pipe2(report, O_CLOEXEC) < 0) {
		int errnum = errno;

		close(go[0]);
		close(go[1]);
		return err_io(err, errnum, NULL, "cannot make a pipe to launch %s", argv[0]);
	}
	l->go_fd = go[1];
	l->report_fd = report[0];
	l->pid = fork();
	if (l->pid == 0) {
		close(go[1]);
		close(report[0]);
		run_child(go[0], report[1], argv, envp);
	}
	close(report[1]);
	close(go[0]);
	if (l->pid < 0)
		return err_file(err, SPULSE_ERROR_PROCESS_LAUNCH, errno, NULL,
				"cannot fork to launch %s", argv[0]);
	return 0;
}

int spulse_launch_new(const char *const *argv, const struct spulse_launch_options *given,
		      struct spulse_launch **launch_out, struct spulse_error **err)
{
	struct spulse_launch_options opts = { .size = sizeof(opts) };
	_cleanup_free_ char **envp = NULL;
	struct spulse_launch *l;
	int r = check_arguments(argv, given, &opts, err);

	if (r == 0 && opts.overrides)
		r = merge_environment(opts.overrides, &envp, err);
	if (r < 0)
		return r;
	l = calloc(1, sizeof(*l));
	if (!l || !(l->program = strdup(argv[0]))) {
		free(l);
		return err_no_memory(err);
	}
	l->go_fd = l->report_fd = -1;
	l->pid = -1;
	r = fork_child(l, argv, envp, err);
	if (r == 0)
		r = proc_handle_open(l->pid, &l->handle, err);
	if (r < 0)
		spulse_launch_free(l);
	else
		*launch_out = l;
	return r;
}

void spulse_launch_options_init(struct spulse_launch_options *options, size_t size)
{
	options_clear(options, size);
}

pid_t spulse_launch_pid(const struct spulse_launch *l)
{
	return l->pid;
}

/* 1: reaped now or before, 0: runs, -errno. */
static int reap(struct spulse_launch *l, int flags)
{
	pid_t r;

	if (l->reaped)
		return 1;
	do
		r = waitpid(l->pid, &l->status, flags);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;
	l->reaped = r > 0;
	return l->reaped;
}

/* 0: the program runs; else an error without a reaped child. */
static int read_report(struct spulse_launch *l, struct spulse_error **err)
{
	unsigned char report[REPORT_LEN];
	ssize_t n = read_full(l->report_fd, report, sizeof(report));
	uint32_t errnum;

	if (n == 0)
		return 0;
	if (n < 0)
		return err_file(err, SPULSE_ERROR_PROCESS_LAUNCH, -n, NULL,
				"cannot learn whether %s was executed", l->program);
	if (n != REPORT_LEN || memcmp(report + 4, report_footer, sizeof(report_footer)) != 0)
		return err_file(err, SPULSE_ERROR_PROCESS_LAUNCH, EBADMSG, NULL,
				"cannot learn whether %s was executed", l->program);
	errnum = (uint32_t)report[0] << 24 | report[1] << 16 | report[2] << 8 | report[3];
	return err_file(err, SPULSE_ERROR_PROCESS_LAUNCH, errnum, NULL, "cannot execute %s",
			l->program);
}

static int resume(struct spulse_launch *l, struct spulse_error **err)
{
	static const char go = GO_BYTE;
	sigset_t pipe_set, old_set, pending;
	bool was_pending;
	ssize_t n;
	int errnum;

	/* The child may be dead: the caller must not get a SIGPIPE for that. MSG_NOSIGNAL does
	 * not exist for pipes, so the signal is blocked and taken back instead. */
	sigemptyset(&pipe_set);
	sigaddset(&pipe_set, SIGPIPE);
	sigpending(&pending);
	was_pending = sigismember(&pending, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe_set, &old_set);
	do
		n = write(l->go_fd, &go, 1);
	while (n < 0 && errno == EINTR);
	errnum = errno;
	if (n < 0 && errnum == EPIPE && !was_pending)
		while (sigtimedwait(&pipe_set, NULL, &(struct timespec){ 0 }) < 0 &&
		       errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &old_set, NULL);
	close(take_fd(&l->go_fd));
	if (n < 0)
		return err_file(err, SPULSE_ERROR_PROCESS_LAUNCH, errnum, NULL,
				"the process that should execute %s is gone", l->program);
	return read_report(l, err);
}

int spulse_launch_run(struct spulse_launch *l, struct spulse_recorder *recorder,
		      struct spulse_error **err)
{
	proc_launch_failed_fn hook = atomic_load(&failed_hook);
	struct spulse_error *error = NULL;
	int r;

	if (l->ran)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "%s was run already", l->program);
	l->ran = true;
	r = resume(l, &error);
	close(take_fd(&l->report_fd));
	if (r == 0)
		return 0;
	if (reap(l, WNOHANG) == 0) {
		/* A report without an end: make sure that the wait below is short. */
		proc_handle_signal(l->handle, SIGKILL);
		reap(l, 0);
	}
	if (recorder && hook)
		hook(recorder, error);
	if (err)
		*err = error;
	else
		spulse_error_free(error);
	return r;
}

static int wait_for(struct spulse_launch *l, int flags, int *status_out,
		    struct spulse_error **err)
{
	int r = reap(l, flags);

	if (r < 0)
		return err_io(err, -r, NULL, "cannot wait for %s (process %d)", l->program,
			      l->pid);
	if (r > 0)
		*status_out = l->status;
	return r;
}

int spulse_launch_try_wait(struct spulse_launch *l, int *status_out, struct spulse_error **err)
{
	return wait_for(l, WNOHANG, status_out, err);
}

int spulse_launch_wait(struct spulse_launch *l, int *status_out, struct spulse_error **err)
{
	int r = wait_for(l, 0, status_out, err);

	return MIN(r, 0);
}

int spulse_launch_kill(struct spulse_launch *l, struct spulse_error **err)
{
	int r = l->reaped ? 0 : proc_handle_signal(l->handle, SIGKILL);

	if (r < 0 && r != -ESRCH)
		return err_io(err, -r, NULL, "cannot kill %s (process %d)", l->program, l->pid);
	return 0;
}

void spulse_launch_free(struct spulse_launch *l)
{
	if (!l)
		return;
	if (l->go_fd >= 0)
		close(l->go_fd);
	if (l->report_fd >= 0)
		close(l->report_fd);
	/* A copy of the handle in a forked process gets ECHILD and leaves the child alone. */
	if (l->pid > 0 && reap(l, WNOHANG) == 0 && !l->ran) {
		if (l->handle)
			proc_handle_signal(l->handle, SIGKILL);
		else
			kill(l->pid, SIGKILL);
		reap(l, 0);
	}
	proc_handle_free(l->handle);
	free(l->program);
	free(l);
}
