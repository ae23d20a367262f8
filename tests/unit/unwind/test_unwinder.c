/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The unwinder object: registers as perf gives them, what the cache keeps, and that a walk whose
 * rules are cached needs no memory, no lock and no system call.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "failalloc.h"
#include "unwind_world.h"

/* Apart in their low bits, so that none puts another out of a small cache. */
enum { PLAIN = 0x1000, END = 0x2100, SLOW = 0x3200, BARE = 0x4300, SIZE = 0x100, BACK = 0x10 };
enum { RBP = 6 };

/* ---- locks are counted by standing in for them (see meson.build: --wrap) ---- */

static unsigned long locks;

int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	locks++;
	return __real_pthread_mutex_lock(mutex);
}

/* ---- a stack with every common kind of frame ---- */

static uint32_t interned;

static uint32_t number(void *data, struct unw_space *space, const struct unw_map *map,
		       uint64_t address)
{
	(void)data;
	(void)space;
	(void)map;
	(void)address;
	return interned++;
}

static struct unwind_world *deep_world(void)
{
	struct unwind_world *w = world_new(UNW_X86_64);
	size_t i = 0;

	world_function(w, PLAIN, SIZE, NO_CFI);
	world_function(w, END, SIZE, CFI(0x07, 16));
	world_function(w, SLOW, SIZE, CFI(0x0e, 24, 0x16, 12, 2, 0x23, 16)); /* no compiled form */
	for (uint64_t start = PLAIN; start <= BARE; start += 0x1100)
		world_call(w, start + BACK);
	for (; i < 40; i++)
		w->words[i] = RUN(PLAIN + BACK);
	w->words[i] = RUN(SLOW + BACK);
	w->words[i + 3] = RUN(BARE + BACK); /* by the frame pointer from here */
	w->regs.value[RBP] = AT(i + 6);
	w->words[i + 7] = RUN(END + BACK);
	w->callbacks.intern = number;
	return w;
}

static void walk_often(struct unwind_world *w, const uint8_t *stack, unsigned int times)
{
	for (unsigned int n = 0; n < times; n++)
		unw_walk(w->unwinder, w->space, &w->regs, stack, 8 * 64, &w->result);
}

static void test_hit_takes_no_memory_and_no_lock(void **state)
{
	struct unwind_world *w = deep_world();
	uint32_t first;

	(void)state;
	world_map(w);
	w->regs.value[16] = RUN(PLAIN);
	failalloc_set(0, false);
	walk_often(w, (const uint8_t *)w->words, 1);
	assert_int_equal(w->result.end, UNW_COMPLETE);
	assert_int_equal(w->result.count, 44);
	assert_true(failalloc_count() > 0); /* the count sees what a miss needs */
	first = interned;
	locks = 0;
	failalloc_set(0, false);
	walk_often(w, (const uint8_t *)w->words, 1000);
	assert_int_equal(failalloc_count(), 0);
	assert_int_equal(locks, 0);
	assert_int_equal(interned, first); /* nor is the caller asked again */
	assert_int_equal(w->result.count, 44);
	world_free(w);
}

/* In strict mode the kernel kills whoever calls it for more than read, write and exit. */
static int walk_without_kernel(struct unwind_world *w, bool warm)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		if (warm)
			walk_often(w, (const uint8_t *)w->words, 1);
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
			_exit(2);
		walk_often(w, (const uint8_t *)w->words, 1000);
		if (!warm)
			syscall(SYS_getppid);
		syscall(SYS_exit, w->result.count == 44 ? 0 : 1);
	}
	assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
	return status;
}

static void test_hit_makes_no_system_call(void **state)
{
	struct unwind_world *w = deep_world();
	int status;

	(void)state;
	if (getenv("MESON_EXE_WRAPPER")) /* an emulator makes some of its own */
		skip();
	world_walk(w, PLAIN, 64);
	status = walk_without_kernel(w, true);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
		skip();
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	/* Who does make one is seen. */
	status = walk_without_kernel(w, false);
	assert_true(WIFSIGNALED(status));
	world_free(w);
}

/* ---- the cache ---- */

static void test_cache_follows_the_space(void **state)
{
	struct unwind_world *w = deep_world();
	struct unw_space *child;
	struct unw_map map;
	uint32_t before;

	(void)state;
	world_walk(w, PLAIN, 64);
	before = interned;
	map = *unw_space_find(w->space, RUN(PLAIN));
	/* A mapping elsewhere changes nothing of what is known. */
	map.start += 0x100000;
	map.end += 0x100000;
	assert_int_equal(unw_space_map(w->space, &map, NULL), 0);
	walk_often(w, (const uint8_t *)w->words, 1);
	assert_int_equal(interned, before);
	/* A child has frames of its own: the number belongs to a process. */
	child = unw_space_fork(w->space);
	unw_walk(w->unwinder, child, &w->regs, (const uint8_t *)w->words, 8 * 64, &w->result);
	assert_int_equal(w->result.count, 44);
	assert_true(interned > before);
	before = interned;
	unw_space_unmap(child, RUN(PLAIN), RUN(PLAIN + 0x1000));
	unw_walk(w->unwinder, child, &w->regs, (const uint8_t *)w->words, 8 * 64, &w->result);
	assert_true(w->result.count < 44);
	/* The parent is as it was, and still known. */
	before = interned;
	walk_often(w, (const uint8_t *)w->words, 1);
	assert_int_equal(w->result.count, 44);
	assert_int_equal(interned, before);
	unw_space_free(child);
	world_free(w);
}

/* Rules belong to the image: what one process made known serves all, wherever they map it. */
static void test_rules_are_shared_by_processes(void **state)
{
	struct unwind_world *w = deep_world();

	(void)state;
	world_walk(w, PLAIN, 1);
	/* From here on the tables tell nothing. */
	memset(w->eh.bytes, 0xff, sizeof(w->eh.bytes));
	for (uint64_t i = 1; i <= 1000; i++) {
		struct unw_map map = *unw_space_find(w->space, RUN(PLAIN));
		struct unw_regs regs = w->regs;
		struct unw_space *space = NULL;
		struct unw_result result;

		map.start -= i << 20;
		map.end -= i << 20;
		map.bias -= i << 20;
		assert_int_equal(unw_space_new(&space, NULL), 0);
		assert_int_equal(unw_space_map(space, &map, NULL), 0);
		regs.value[16] -= i << 20;
		unw_walk(w->unwinder, space, &regs, (const uint8_t *)w->words, 8, &result);
		assert_int_equal(result.count, 2);
		assert_true(result.addresses[1] == RUN(PLAIN + BACK - 1));
		unw_space_free(space);
	}
	world_free(w);
}

/* A frame that could not be interned is asked for again. */
static uint32_t refuse(void *data, struct unw_space *space, const struct unw_map *map,
		       uint64_t address)
{
	(void)data;
	(void)space;
	(void)map;
	(void)address;
	interned++;
	return UINT32_MAX;
}

static void test_refused_frames_are_not_kept(void **state)
{
	struct unwind_world *w = deep_world();
	uint32_t asked;

	(void)state;
	w->callbacks.intern = refuse;
	interned = 0;
	world_walk(w, PLAIN, 64);
	asked = interned;
	assert_int_equal(w->result.count, 44);
	world_walk(w, PLAIN, 64);
	assert_int_equal(interned, 2 * asked);
	assert_true(w->result.frames[0] == UINT32_MAX);
	world_free(w);
}

/* ---- registers ---- */

static void test_registers_from_perf(void **state)
{
	/* ax bx cx dx si di bp sp ip flags, then r8-r15 from bit 16 on */
	static const uint8_t dwarf_of[] = {0, 3, 2, 1, 4, 5, 6, 7, 16};
	uint64_t values[64];
	struct unw_regs regs;

	(void)state;
	for (unsigned int i = 0; i < 64; i++)
		values[i] = 1000 + i;
	assert_true(unw_regs_from_perf(UNW_X86_64, 0xff01ff, values, &regs));
	for (unsigned int i = 0; i < 9; i++)
		assert_int_equal(regs.value[dwarf_of[i]], 1000 + i);
	for (unsigned int i = 8; i < 16; i++)
		assert_int_equal(regs.value[i], 1000 + 9 + i - 8);
	assert_true(regs.known == 0x1ffff);
	/* flags and segments lie between in a sample that has them */
	assert_true(unw_regs_from_perf(UNW_X86_64, 0xff03ff, values, &regs));
	assert_int_equal(regs.value[8], 1010);
	/* without sp or pc there is no walk */
	assert_false(unw_regs_from_perf(UNW_X86_64, 0xff017f, values, &regs));
	assert_false(unw_regs_from_perf(UNW_X86_64, 0xff00ff, values, &regs));
	assert_true(unw_regs_from_perf(UNW_X86_64, 0x180, values, &regs));
	assert_true(regs.known == (1 << 7 | 1 << 16));
	assert_true(unw_regs_from_perf(UNW_AARCH64, (UINT64_C(1) << 33) - 1, values, &regs));
	for (unsigned int i = 0; i < 33; i++)
		assert_int_equal(regs.value[i], 1000 + i);
	assert_true(unw_regs_from_perf(UNW_AARCH64, UINT64_C(7) << 30, values, &regs));
	assert_int_equal(regs.value[32], 1002);
	assert_false(unw_regs_from_perf(UNW_AARCH64, UINT64_C(3) << 30, values, &regs));
}

/* ---- generated code ---- */

static unsigned int reads;

static bool read_code(void *data, struct unw_space *space, uint64_t address, void *buf, size_t len)
{
	static const uint8_t code[] = {0x48, 0x83, 0xec, 0x18, 0x90, 0x48, 0x83, 0xc4, 0x18, 0xc3};

	(void)data;
	(void)space;
	reads++;
	for (size_t i = 0; i < len; i++) {
		uint64_t at = address + i - 0x10000;

		/* The mapping's own bytes only. */
		assert_true(at < 0x200);
		((uint8_t *)buf)[i] = at < sizeof(code) ? code[at] : 0xcc;
	}
	return true;
}

static void test_code_of_the_target(void **state)
{
	struct unwind_world *w = deep_world();
	struct unw_map jit = {.start = 0x10000, .end = 0x10200, .module = 4};

	(void)state;
	w->callbacks.read_code = read_code;
	world_map(w);
	assert_int_equal(unw_space_map(w->space, &jit, NULL), 0);
	w->words[3] = RUN(END + BACK);
	w->regs.value[16] = 0x10004;
	world_walk_registers(w, 64);
	assert_int_equal(w->result.count, 2);
	assert_int_equal(w->result.end, UNW_COMPLETE);
	assert_int_equal(w->result.guessed, 1);
	assert_int_equal(world_fallbacks(w), 0);
	assert_true(reads > 0);
	reads = 0;
	world_walk_registers(w, 64);
	assert_int_equal(reads, 0); /* the rule is kept */
	/* The mapping's last byte, too. */
	w->regs.value[16] = 0x101ff;
	world_walk_registers(w, 64);
	assert_true(reads > 0);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hit_takes_no_memory_and_no_lock),
		cmocka_unit_test(test_hit_makes_no_system_call),
		cmocka_unit_test(test_cache_follows_the_space),
		cmocka_unit_test(test_rules_are_shared_by_processes),
		cmocka_unit_test(test_refused_frames_are_not_kept),
		cmocka_unit_test(test_registers_from_perf),
		cmocka_unit_test(test_code_of_the_target),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
