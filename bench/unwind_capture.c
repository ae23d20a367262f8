/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Captures registers and stack bytes of a running program for bench/unwind and its peers.
 * usage: unwind-capture OUT STACK_BYTES MAX_SAMPLES COMMAND [ARG...]   (x86-64)
 *
 * OUT: "UNWCAP01", then records of u32 kind, u32 length and payload. Kind 1, a mapping: u64 start,
 * end, file offset, and its path. Kind 2, a sample: 17 registers in DWARF order, stack bytes.
 */
#include <asm/perf_regs.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RING_PAGES = 2048, MAX_CPUS = 64, REGISTERS = 17 };

static const uint8_t perf_of_dwarf[REGISTERS] = {
	PERF_REG_X86_AX,  PERF_REG_X86_DX,  PERF_REG_X86_CX,  PERF_REG_X86_BX,	PERF_REG_X86_SI,
	PERF_REG_X86_DI,  PERF_REG_X86_BP,  PERF_REG_X86_SP,  PERF_REG_X86_R8,	PERF_REG_X86_R9,
	PERF_REG_X86_R10, PERF_REG_X86_R11, PERF_REG_X86_R12, PERF_REG_X86_R13, PERF_REG_X86_R14,
	PERF_REG_X86_R15, PERF_REG_X86_IP,
};

struct capture {
	FILE *out;
	pid_t pid;
	uint64_t mask;
	unsigned long samples, max;
	int fds[MAX_CPUS];
	uint8_t *rings[MAX_CPUS];
	unsigned int cpus;
};

static void put(struct capture *c, uint32_t kind, const void *a, uint32_t a_len, const void *b,
		uint32_t b_len)
{
	uint32_t head[2] = {kind, a_len + b_len};

	fwrite(head, sizeof(head), 1, c->out);
	fwrite(a, a_len, 1, c->out);
	fwrite(b, b_len, 1, c->out);
}

static bool open_events(struct capture *c, uint32_t stack_bytes)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_freq = 997,
		.freq = 1,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
		.disabled = 1,
		.inherit = 1,
		.exclude_kernel = 1,
		.mmap = 1,
		.mmap2 = 1,
		.enable_on_exec = 1,
		.sample_regs_user = c->mask,
		.sample_stack_user = stack_bytes,
	};

	c->cpus = (unsigned int)sysconf(_SC_NPROCESSORS_ONLN);
	if (c->cpus > MAX_CPUS)
		c->cpus = MAX_CPUS;
	for (unsigned int i = 0; i < c->cpus; i++) {
		c->fds[i] = (int)syscall(SYS_perf_event_open, &attr, c->pid, (int)i, -1,
					 PERF_FLAG_FD_CLOEXEC);
		if (c->fds[i] < 0)
			return false;
		c->rings[i] = mmap(NULL, (RING_PAGES + 1) * 4096ul, PROT_READ | PROT_WRITE,
				   MAP_SHARED, c->fds[i], 0);
		if (c->rings[i] == MAP_FAILED)
			return false;
	}
	return true;
}

static void take_sample(struct capture *c, const uint8_t *p)
{
	uint64_t regs[REGISTERS], abi, size, dynamic;
	uint32_t pid;

	memcpy(&pid, p, 4);
	memcpy(&abi, p + 8, 8);
	if ((pid_t)pid != c->pid || abi != PERF_SAMPLE_REGS_ABI_64 || c->samples >= c->max)
		return;
	p += 16;
	for (unsigned int i = 0; i < REGISTERS; i++) {
		uint64_t below = c->mask & ((1ull << perf_of_dwarf[i]) - 1);

		memcpy(&regs[i], p + 8 * (unsigned int)__builtin_popcountll(below), 8);
	}
	p += 8 * REGISTERS;
	memcpy(&size, p, 8);
	if (!size)
		return;
	memcpy(&dynamic, p + 8 + size, 8);
	put(c, 2, regs, sizeof(regs), p + 8, (uint32_t)dynamic);
	c->samples++;
}

static void take_record(struct capture *c, const struct perf_event_header *h)
{
	const uint8_t *p = (const uint8_t *)(h + 1);
	uint64_t range[3];
	uint32_t pid, prot;

	if (h->type == PERF_RECORD_SAMPLE) {
		take_sample(c, p);
		return;
	}
	if (h->type != PERF_RECORD_MMAP2)
		return;
	memcpy(&pid, p, 4);
	memcpy(range, p + 8, sizeof(range));
	memcpy(&prot, p + 56, 4);
	range[1] += range[0];
	if ((pid_t)pid == c->pid && (prot & PROT_EXEC))
		put(c, 1, range, sizeof(range), p + 64, (uint32_t)strlen((const char *)p + 64));
}

static void drain(struct capture *c, unsigned int cpu)
{
	struct perf_event_mmap_page *page = (struct perf_event_mmap_page *)c->rings[cpu];
	const uint8_t *data = c->rings[cpu] + 4096;
	uint64_t mask = RING_PAGES * 4096ull - 1, tail = page->data_tail;
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	static uint8_t record[1 << 16];

	while (tail < head) {
		struct perf_event_header h;

		for (size_t i = 0; i < sizeof(h); i++)
			((uint8_t *)&h)[i] = data[(tail + i) & mask];
		for (size_t i = 0; i < h.size; i++)
			record[i] = data[(tail + i) & mask];
		take_record(c, (const struct perf_event_header *)record);
		tail += h.size;
	}
	__atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
}

static pid_t start(char **command, int *go)
{
	int ends[2];
	pid_t pid;

	if (pipe(ends) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		char byte;

		close(ends[1]);
		if (read(ends[0], &byte, 1) == 1)
			execvp(command[0], command);
		_exit(127);
	}
	close(ends[0]);
	*go = ends[1];
	return pid;
}

int main(int argc, char **argv)
{
	struct capture c = {0};
	int go = -1, status = 0;
	bool ended = false;

	if (argc < 5)
		return 2;
	c.out = fopen(argv[1], "wb");
	c.max = strtoul(argv[3], NULL, 10);
	for (unsigned int i = 0; i < REGISTERS; i++)
		c.mask |= 1ull << perf_of_dwarf[i];
	if (!c.out || (c.pid = start(argv + 4, &go)) < 0)
		return 1;
	if (!open_events(&c, (uint32_t)strtoul(argv[2], NULL, 10))) {
		fprintf(stderr, "cannot sample: %s\n", strerror(errno));
		kill(c.pid, SIGKILL);
		return 77;
	}
	fwrite("UNWCAP01", 8, 1, c.out);
	if (write(go, "x", 1) != 1)
		return 1;
	while (!ended && c.samples < c.max) {
		poll(NULL, 0, 20);
		ended = waitpid(c.pid, &status, WNOHANG) != 0;
		for (unsigned int i = 0; i < c.cpus; i++)
			drain(&c, i);
	}
	if (!ended) {
		kill(c.pid, SIGKILL);
		waitpid(c.pid, &status, 0);
	}
	printf("%lu samples\n", c.samples);
	return fclose(c.out) ? 1 : 0;
}
