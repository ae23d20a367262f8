/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "offline.h"

static struct offline o;

static int setup(void **state)
{
	(void)state;
	offline_init(&o, 1);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	offline_release(&o);
	return 0;
}

static void put(struct perf_event event)
{
	fake_source_put(&o.fake, 0, &event);
}

static void run(void)
{
	offline_start(&o);
	offline_finish(&o);
}

/* All modules in file order: "pid start-end+offset path; ". */
static const char *modules(void)
{
	static char text[4096];
	size_t len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < spulse_source_module_count(o.source); i++) {
		const struct spulse_module *m = spulse_source_module(o.source, i);

		len += sprintf(text + len, "%d %llx-%llx+%llx %s; ", spulse_module_pid(m),
			       (unsigned long long)spulse_module_start(m),
			       (unsigned long long)spulse_module_end(m),
			       (unsigned long long)spulse_module_file_offset(m),
			       spulse_module_path(m));
	}
	return text;
}

/* Module and address within it of the next stack's innermost frame. */
static const char *next_leaf(void)
{
	static char text[64];
	const struct spulse_stack *stack;
	struct spulse_frame_context context;
	struct spulse_frame_iter iter;

	assert_int_equal(spulse_stacks_next(o.stacks, &stack, NULL), 1);
	iter = spulse_stack_frames(stack);
	assert_true(spulse_frame_iter_next_context(&iter, &context));
	if (!context.module)
		return "none";
	snprintf(text, sizeof(text), "m%u+%llx", spulse_module_id(context.module),
		 (unsigned long long)context.file_relative_ip);
	return text;
}

static void a_sample_is_pinned_to_the_mapping_that_holds_it(void **state)
{
	(void)state;
	put(offline_mmap(5, 1, 0x10000, 0x1000, 0x3000, "/a"));
	put(offline_sample(5, 5, 2, 0x10010));
	put(offline_sample(5, 5, 3, 0x11000));
	put(offline_sample(6, 6, 4, 0x10010));
	run();
	assert_string_equal(modules(), "5 10000-11000+3000 /a; ");
	assert_string_equal(next_leaf(), "m0+3010");
	assert_string_equal(next_leaf(), "none");
	assert_string_equal(next_leaf(), "none");
}

static void the_same_mapping_again_writes_nothing(void **state)
{
	struct perf_event event = offline_mmap(5, 1, 0x10000, 0x1000, 0, "/a");

	(void)state;
	event.mmap.inode_generation = 9;
	put(event);
	put(event);
	/* What does not tell the generation is the same one. */
	event.mmap.inode_generation = 0;
	put(event);
	run();
	assert_string_equal(modules(), "5 10000-11000+0 /a; ");
}

static void another_file_over_the_middle_leaves_both_sides(void **state)
{
	(void)state;
	put(offline_mmap(5, 1, 0x10000, 0x5000, 0x1000, "/a"));
	put(offline_sample(5, 5, 2, 0x12000));
	put(offline_mmap(5, 3, 0x12000, 0x1000, 0, "/b"));
	put(offline_sample(5, 5, 4, 0x10000));
	put(offline_sample(5, 5, 5, 0x12000));
	put(offline_sample(5, 5, 6, 0x13000));
	run();
	assert_string_equal(modules(), "5 10000-15000+1000 /a; 5 10000-12000+1000 /a; "
				       "5 13000-15000+4000 /a; 5 12000-13000+0 /b; ");
	assert_string_equal(next_leaf(), "m0+3000");
	assert_string_equal(next_leaf(), "m1+1000");
	assert_string_equal(next_leaf(), "m3+0");
	assert_string_equal(next_leaf(), "m2+4000");
}

static void mappings_without_a_name_or_a_length_are_left_out(void **state)
{
	struct perf_event event = offline_mmap(5, 1, 0x10000, 0x1000, 0, "/data");

	(void)state;
	event.mmap.exec = false;
	put(event);
	put(offline_mmap(5, 2, 0x20000, 0, 0, "/empty"));
	put(offline_mmap(5, 3, 0x30000, 0x1000, 0, ""));
	put(offline_mmap(5, 4, 0x40000, UINT64_MAX, 0, "//anon"));
	run();
	assert_string_equal(modules(), "5 40000-ffffffffffffffff+0 //anon; ");
}

static void an_execve_retires_everything_at_once(void **state)
{
	(void)state;
	put(offline_mmap(5, 1, 0x10000, 0x1000, 0, "/old"));
	put(offline_mmap(5, 2, 0x20000, 0x1000, 0, "/oldlib"));
	put(offline_sample(5, 5, 3, 0x10010));
	put(offline_comm(5, 5, 4, true, "new"));
	put(offline_sample(5, 5, 5, 0x10010));
	put(offline_mmap(5, 6, 0x10000, 0x1000, 0, "/new"));
	put(offline_sample(5, 5, 7, 0x10010));
	run();
	assert_string_equal(next_leaf(), "m0+10");
	assert_string_equal(next_leaf(), "none");
	assert_string_equal(next_leaf(), "m2+10");
}

static void a_new_name_is_no_execve(void **state)
{
	(void)state;
	put(offline_mmap(5, 1, 0x10000, 0x1000, 0, "/a"));
	put(offline_comm(5, 5, 2, false, "renamed"));
	put(offline_comm(5, 6, 3, false, "worker"));
	put(offline_sample(5, 5, 4, 0x10010));
	run();
	assert_string_equal(next_leaf(), "m0+10");
}

/* Every annotation of process 5 in file order: "key=value; ". */
static const char *names(void)
{
	static char text[4096];
	const struct spulse_annotation *all;
	size_t n, len = 0;

	text[0] = '\0';
	all = spulse_source_annotations(o.source, &n);
	for (size_t i = 0; i < n; i++)
		if (all[i].pid == 5)
			len += sprintf(text + len, "%s=%s; ", all[i].key, all[i].value);
	return text;
}

/* A program may take another name many thousand times a second. */
static void only_names_that_samples_have_are_written(void **state)
{
	char name[16];

	(void)state;
	o.options.annotate = true;
	put(offline_mmap(5, 1, 0x10000, 0x1000, 0, "/a"));
	put(offline_comm(5, 5, 2, false, "first"));
	put(offline_sample(5, 5, 3, 0x10010));
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "name%d", i);
		put(offline_comm(5, 5, 4, false, name));
		put(offline_comm(5, 6, 4, false, name));
	}
	put(offline_sample(5, 5, 5, 0x10010));
	put(offline_sample(5, 5, 6, 0x10010));
	put(offline_comm(5, 5, 7, false, "first"));
	put(offline_comm(5, 5, 7, false, "name999"));
	put(offline_sample(5, 5, 8, 0x10010));
	put(offline_comm(5, 5, 9, false, "last"));
	run();
	assert_string_equal(names(), "comm=first; comm=name999; thread-name/5=name999; ");
}

/* Downwards as the kernel hands addresses out: each must be found, before and after a new one. */
static void many_mappings_are_all_found(void **state)
{
	enum { MANY = 3000 };

	(void)state;
	for (unsigned int i = 0; i < MANY; i++)
		put(offline_mmap(5, 1, 0x90000000 - i * 0x2000ull, 0x1000, 0, "/many"));
	/* The middle of every third one is replaced. */
	for (unsigned int i = 0; i < MANY; i += 3)
		put(offline_mmap(5, 2, 0x90000400 - i * 0x2000ull, 0x100, 0, "/new"));
	for (unsigned int i = 0; i < MANY; i++)
		put(offline_sample(5, 5, 3, 0x90000500 - i * 0x2000ull));
	run();
	for (unsigned int i = 0; i < MANY; i++) {
		char expected[32];

		/* Behind the replacement: the third module that came of it. */
		snprintf(expected, sizeof(expected), "m%u+500",
			 i % 3 ? i : MANY + i + 1);
		assert_string_equal(next_leaf(), expected);
	}
}

static void a_forked_child_has_modules_of_its_own(void **state)
{
	(void)state;
	put(offline_mmap(5, 1, 0x20000, 0x1000, 0, "/b"));
	put(offline_mmap(5, 2, 0x10000, 0x1000, 0, "/a"));
	put(offline_fork(5, 8, 8, 3));
	put(offline_sample(8, 8, 4, 0x20010));
	/* The child's execve leaves the parent's alone. */
	put(offline_comm(8, 8, 5, true, "other"));
	put(offline_sample(8, 8, 6, 0x20010));
	put(offline_sample(5, 5, 7, 0x20010));
	run();
	assert_string_equal(modules(), "5 20000-21000+0 /b; 5 10000-11000+0 /a; "
				       "8 10000-11000+0 /a; 8 20000-21000+0 /b; ");
	assert_string_equal(next_leaf(), "m3+10");
	assert_string_equal(next_leaf(), "none");
	assert_string_equal(next_leaf(), "m0+10");
}

static void a_new_thread_has_no_modules_of_its_own(void **state)
{
	(void)state;
	put(offline_mmap(5, 1, 0x10000, 0x1000, 0, "/a"));
	put(offline_fork(5, 5, 9, 2));
	put(offline_sample(5, 9, 3, 0x10010));
	run();
	assert_string_equal(modules(), "5 10000-11000+0 /a; ");
	assert_string_equal(next_leaf(), "m0+10");
}

static void children_are_ignored_unless_they_are_followed(void **state)
{
	(void)state;
	o.options.follow = SPULSE_FOLLOW_NONE;
	put(offline_mmap(5, 1, 0x10000, 0x1000, 0, "/a"));
	put(offline_fork(5, 8, 8, 2));
	run();
	assert_string_equal(modules(), "5 10000-11000+0 /a; ");
}

static void a_reused_process_id_starts_afresh(void **state)
{
	struct perf_event end = offline_event(PERF_RECORD_EXIT, 8, 8, 3);

	(void)state;
	put(offline_mmap(5, 1, 0x10000, 0x1000, 0, "/a"));
	put(offline_mmap(8, 2, 0x50000, 0x1000, 0, "/gone"));
	put(end);
	put(offline_fork(5, 8, 8, 4));
	put(offline_sample(8, 8, 5, 0x50010));
	put(offline_sample(8, 8, 6, 0x10010));
	run();
	assert_string_equal(next_leaf(), "none");
	assert_string_equal(next_leaf(), "m2+10");
}

static void kernel_mappings_serve_every_process(void **state)
{
	struct perf_event event = offline_mmap(-1, 1, 0xffffffff81000000, 0x1000000,
					       0xffffffff81000000, "[kernel.kallsyms]_text");
	struct perf_event sample = offline_sample(5, 5, 2, 0xffffffff81000010);

	(void)state;
	event.misc = PERF_RECORD_MISC_KERNEL;
	event.mmap.exec = false;
	put(event);
	sample.misc = PERF_RECORD_MISC_KERNEL;
	put(sample);
	run();
	assert_true(spulse_module_is_kernel(spulse_source_module(o.source, 0)));
	assert_string_equal(next_leaf(), "m0+ffffffff81000010");
}

static const char *runtimes(void)
{
	static char text[256];
	size_t n, len = 0;
	const struct spulse_python_runtime *list = spulse_source_python_runtimes(o.source, &n);

	text[0] = '\0';
	for (size_t i = 0; i < n; i++)
		len += sprintf(text + len, "%llu:%d:%u ", (unsigned long long)list[i].timestamp_ns,
			       list[i].pid, list[i].is_python);
	return text;
}

static void python_runtimes_are_marked_from_start_to_end(void **state)
{
	(void)state;
	o.options.python = SPULSE_PYTHON_PERFMAP;
	put(offline_mmap(5, 10, 0x10000, 0x1000, 0, "/usr/bin/python3.12"));
	put(offline_mmap(5, 11, 0x20000, 0x1000, 0, "/usr/lib/libpython3.12.so.1.0"));
	put(offline_fork(5, 8, 8, 12));
	put(offline_comm(8, 8, 13, true, "cat"));
	put(offline_mmap(8, 14, 0x10000, 0x1000, 0, "/bin/cat"));
	run();
	assert_string_equal(runtimes(), "10:5:1 12:8:1 13:8:0 ");
}

static void without_a_perf_map_python_is_a_program_like_others(void **state)
{
	(void)state;
	put(offline_mmap(5, 10, 0x10000, 0x1000, 0, "/usr/bin/python3.12"));
	run();
	assert_string_equal(runtimes(), "");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_sample_is_pinned_to_the_mapping_that_holds_it),
		TEST(the_same_mapping_again_writes_nothing),
		TEST(another_file_over_the_middle_leaves_both_sides),
		TEST(mappings_without_a_name_or_a_length_are_left_out),
		TEST(an_execve_retires_everything_at_once),
		TEST(a_new_name_is_no_execve),
		TEST(only_names_that_samples_have_are_written),
		TEST(many_mappings_are_all_found),
		TEST(a_forked_child_has_modules_of_its_own),
		TEST(a_new_thread_has_no_modules_of_its_own),
		TEST(children_are_ignored_unless_they_are_followed),
		TEST(a_reused_process_id_starts_afresh),
		TEST(kernel_mappings_serve_every_process),
		TEST(python_runtimes_are_marked_from_start_to_end),
		TEST(without_a_perf_map_python_is_a_program_like_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
