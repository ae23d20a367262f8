/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * unwind-stops STOPS PROGRAM ARG...: stops a program again and again, steps it instruction by
 * instruction for a while, and unwinds each stop twice: with our walk, and with libdwfl. Prints how
 * many chains of return addresses are the same. Exit 1 when one differs otherwise than that
 * libdwfl gave up where ours went on, or left a frame out.
 */
#include <elf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "image/image.h"
#include "proc/proc.h"
#include "unwind/unwind.h"

#include "random.h"

enum {
	STEPS = 24, /* single steps at each stop */
	MAX_STACK = 512 << 10,
	MAX_SHOWN = 10,
#if defined(__x86_64__)
	NATIVE_SP = 7,
#else
	NATIVE_SP = 31,
#endif
};

#if defined(__x86_64__)
#define NATIVE UNW_X86_64
#else
#define NATIVE UNW_AARCH64
#endif

struct chain {
	uint64_t at[UNW_MAX_FRAMES]; /* as looked up: return addresses less one */
	unsigned int len;
	bool whole;
};

struct session {
	pid_t pid;
	Dwfl *dwfl;
	struct unw_space *space;
	struct unwinder *unwinder;
	uint64_t maps_sum;
	unsigned long stops, frames, same, longer, skipped, shorter, differ;
};

static char *debug_path;
static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_linux_proc_find_elf,
	.find_debuginfo = dwfl_standard_find_debuginfo,
	.debuginfo_path = &debug_path,
};

static void die(const char *what)
{
	perror(what);
	exit(2);
}

/* ---- libdwfl ---- */

static int add_frame(Dwfl_Frame *frame, void *data)
{
	struct chain *chain = data;
	bool exact;
	Dwarf_Addr pc;

	if (!dwfl_frame_pc(frame, &pc, &exact) || chain->len == UNW_MAX_FRAMES)
		return DWARF_CB_ABORT;
	chain->at[chain->len++] = pc - !exact;
	return DWARF_CB_OK;
}

static void open_dwfl(struct session *s)
{
	dwfl_end(s->dwfl);
	s->dwfl = dwfl_begin(&callbacks);
	if (!s->dwfl || dwfl_linux_proc_report(s->dwfl, s->pid) ||
	    dwfl_report_end(s->dwfl, NULL, NULL) || dwfl_linux_proc_attach(s->dwfl, s->pid, true)) {
		fprintf(stderr, "libdwfl: %s\n", dwfl_errmsg(-1));
		exit(2);
	}
}

/* ---- ours ---- */

static void add_mapping(struct session *s, const struct proc_map *m)
{
	const struct image_request request = {.pid = s->pid,
					      .start = m->start,
					      .end = m->end,
					      .file_offset = m->offset,
					      .inode = m->inode,
					      .dev_major = m->dev_major,
					      .dev_minor = m->dev_minor,
					      .path = m->path};
	struct unw_map map = {.start = m->start, .end = m->end};
	struct image *image = NULL;

	if (m->path[0] && image_open(NULL, &request, &image, NULL) == IMAGE_OK &&
	    image_bias(image, m->start, m->end, m->offset, &map.bias) &&
	    unw_image_new(image, &map.image, NULL) < 0)
		exit(2);
	if (unw_space_map(s->space, &map, NULL) < 0)
		exit(2);
	unw_image_unref(map.image);
	image_unref(image);
}

/* Both sides learn anew what is mapped when that changed. */
static void follow_maps(struct session *s)
{
	struct proc_maps maps = {0};
	uint64_t sum = 0;

	if (proc_maps_read(&maps, s->pid, NULL) < 0)
		die("maps");
	for (size_t i = 0; i < maps.maps.len; i++)
		if (maps.maps.data[i].exec)
			sum = (sum ^ maps.maps.data[i].start ^ maps.maps.data[i].end) *
			      0x9e3779b97f4a7c15;
	if (sum != s->maps_sum) {
		s->maps_sum = sum;
		unw_space_clear(s->space);
		for (size_t i = 0; i < maps.maps.len; i++)
			if (maps.maps.data[i].exec)
				add_mapping(s, &maps.maps.data[i]);
		open_dwfl(s);
	}
	proc_maps_release(&maps);
}

static bool read_registers(pid_t pid, struct unw_regs *regs)
{
	struct user_regs_struct u;
	struct iovec io = {&u, sizeof(u)};

	if (ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &io))
		return false;
#if defined(__x86_64__)
	const uint64_t values[] = {u.rax, u.rdx, u.rcx, u.rbx, u.rsi, u.rdi, u.rbp, u.rsp, u.r8,
				   u.r9,  u.r10, u.r11, u.r12, u.r13, u.r14, u.r15, u.rip};

	memcpy(regs->value, values, sizeof(values));
	regs->known = 0x1ffff;
#else
	memcpy(regs->value, u.regs, sizeof(u.regs));
	regs->value[31] = u.sp;
	regs->value[32] = u.pc;
	regs->known = (UINT64_C(1) << UNW_REGS) - 1;
#endif
	return true;
}

static void walk(struct session *s, const struct unw_regs *regs, struct chain *chain)
{
	static uint8_t stack[MAX_STACK];
	uint64_t sp = regs->value[NATIVE_SP];
	struct unw_result result;
	ssize_t got = 0;

	/* Whatever of it is mapped; a page less at a time. */
	for (size_t len = sizeof(stack); len >= 4096 && got <= 0; len /= 2) {
		struct iovec local = {stack, len}, remote = {(void *)(uintptr_t)sp, len};

		got = process_vm_readv(s->pid, &local, 1, &remote, 1, 0);
	}
	unw_walk(s->unwinder, s->space, regs, stack, got > 0 ? (size_t)got : 0, &result);
	memcpy(chain->at, result.addresses, result.count * sizeof(chain->at[0]));
	chain->len = result.count;
	chain->whole = result.end == UNW_COMPLETE;
}

/* ---- comparison ---- */

static void show(const struct session *s, const struct chain *ours, const struct chain *theirs)
{
	printf("  stop %lu: ours %s, libdwfl %s\n", s->stops, ours->whole ? "whole" : "cut",
	       theirs->whole ? "whole" : "cut");
	for (unsigned int i = 0; i < ours->len || i < theirs->len; i++) {
		uint64_t a = i < ours->len ? ours->at[i] : 0;
		uint64_t b = i < theirs->len ? theirs->at[i] : 0;
		Dwfl_Module *module = dwfl_addrmodule(s->dwfl, a ? a : b);
		const char *name = module ? dwfl_module_addrname(module, a ? a : b) : NULL;

		printf("    %#18llx %#18llx %s%s\n", (unsigned long long)a, (unsigned long long)b,
		       name ? name : "?", a == b ? "" : "  <<");
	}
}

/*
 * A signal's restorer is entered as if by a call. We name such a frame like any other's return
 * address, by the byte before; libdwfl, as the frame behind it was interrupted, by its own.
 */
static bool same_frame(const struct chain *ours, const struct chain *theirs, unsigned int i)
{
	return ours->at[i] == theirs->at[i] || (i && ours->at[i] + 1 == theirs->at[i]);
}

/*
 * Whether libdwfl only left frames out: a step by the frame pointer skips the caller of code that
 * has set up no frame of its own, as is common where there are no tables.
 */
static bool theirs_skips(const struct chain *ours, const struct chain *theirs)
{
	unsigned int found = 0;

	for (unsigned int i = 0; i < ours->len && found < theirs->len; i++)
		found += ours->at[i] == theirs->at[found] ||
			 (i && ours->at[i] + 1 == theirs->at[found]);
	return ours->whole && found == theirs->len;
}

static void compare(struct session *s, const struct chain *ours, const struct chain *theirs)
{
	unsigned int common = 0, shown = (unsigned int)(s->shorter + s->differ);

	while (common < ours->len && common < theirs->len && same_frame(ours, theirs, common))
		common++;
	s->stops++;
	s->frames += ours->len;
	if (common == ours->len && common == theirs->len)
		s->same++;
	else if (common == theirs->len && ours->whole)
		s->longer++;
	else if (common == ours->len)
		s->shorter++;
	else if (theirs_skips(ours, theirs))
		s->skipped++;
	else
		s->differ++;
	if (s->shorter + s->differ > shown && shown < MAX_SHOWN)
		show(s, ours, theirs);
	else if (getenv("UNWIND_STOPS_VERBOSE") && common < ours->len)
		show(s, ours, theirs);
}

static void check_stop(struct session *s)
{
	struct chain ours = {0}, theirs = {0};
	struct unw_regs regs;

	if (!read_registers(s->pid, &regs))
		die("registers");
	walk(s, &regs, &ours);
	theirs.whole = dwfl_getthread_frames(s->dwfl, s->pid, add_frame, &theirs) == 0;
	compare(s, &ours, &theirs);
}

/* ---- the target ---- */

/* Waits for its next stop; signals go on to it. False when it is gone. */
static bool wait_stop(struct session *s, int request)
{
	int status;

	for (;;) {
		if (waitpid(s->pid, &status, __WALL) != s->pid || !WIFSTOPPED(status))
			return false;
		if (WSTOPSIG(status) == SIGTRAP || status >> 16)
			return true;
		if (ptrace(request, s->pid, 0, WSTOPSIG(status)))
			return false;
	}
}

static bool stop_and_step(struct session *s, struct random *rng)
{
	struct timespec pause = {.tv_nsec = (long)random_below(rng, 3000000)};

	nanosleep(&pause, NULL);
	if (ptrace(PTRACE_INTERRUPT, s->pid, 0, 0) || !wait_stop(s, PTRACE_CONT))
		return false;
	follow_maps(s);
	for (unsigned int i = 0; i < STEPS; i++) {
		check_stop(s);
		if (ptrace(PTRACE_SINGLESTEP, s->pid, 0, 0) || !wait_stop(s, PTRACE_SINGLESTEP))
			return false;
	}
	return ptrace(PTRACE_CONT, s->pid, 0, 0) == 0;
}

static pid_t start(char **argv)
{
	pid_t pid = fork();

	if (pid == 0) {
		if (!freopen("/dev/null", "w", stdout))
			_exit(2);
		execvp(argv[0], argv);
		_exit(127);
	}
	return pid;
}

int main(int argc, char **argv)
{
	const struct unw_callbacks none = {0};
	struct session s = {0};
	struct random rng = {.state = 1};
	unsigned long stops;

	if (argc < 3)
		return 2;
	stops = strtoul(argv[1], NULL, 10);
	s.pid = start(argv + 2);
	if (s.pid < 0 || unw_space_new(&s.space, NULL) < 0 ||
	    unwinder_new(NATIVE, &none, &s.unwinder, NULL) < 0)
		die("start");
	usleep(100000); /* past its dynamic linking */
	if (ptrace(PTRACE_SEIZE, s.pid, 0, 0)) {
		printf("SKIP: no ptrace\n");
		kill(s.pid, SIGKILL);
		return 77;
	}
	for (unsigned long i = 0; i < stops && stop_and_step(&s, &rng); i++)
		;
	kill(s.pid, SIGKILL);
	waitpid(s.pid, NULL, __WALL);
	dwfl_end(s.dwfl);
	unwinder_free(s.unwinder);
	unw_space_free(s.space);
	printf("%lu stops, %lu frames: %lu same, %lu where libdwfl gave up, %lu where it skipped "
	       "frames, "
	       "%lu shorter, %lu differ\n",
	       s.stops, s.frames, s.same, s.longer, s.skipped, s.shorter, s.differ);
	return s.shorter || s.differ ? 1 : 0;
}
