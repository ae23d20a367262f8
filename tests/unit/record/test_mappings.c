/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Mappings that come, go and hide while a real process is recorded. The targets have no frame
 * pointers, so that whole stacks show that unwind tables were found. This program is its own
 * target where one must be executed: `PROGRAM target PIPE PIPE`.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "live.h"

static char folder[64];

static int setup(void **state)
{
	int r = live_setup(state);

	strcpy(folder, "/tmp/test-mappings-XXXXXX");
	return mkdtemp(folder) ? r : -1;
}

static int teardown(void **state)
{
	char command[128];

	live_teardown(state);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

/* A path in the test's folder; the last four live. */
static const char *in_folder(const char *name)
{
	static char paths[4][128];
	static unsigned int next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
	return path;
}

static void copy_file(const char *from, const char *to)
{
	char buf[65536];
	int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_EXCL, 0755);
	ssize_t n;

	if (in < 0 || out < 0)
		abort();
	while ((n = read(in, buf, sizeof(buf))) > 0)
		if (write(out, buf, n) != n)
			abort();
	close(in);
	close(out);
}

/* ---- what targets do ---- */

static __attribute__((noinline)) unsigned long leaf(void)
{
	volatile unsigned long sink = 0;

	for (int i = 0; i < 2000000; i++)
		sink = sink * 31 + i;
	return sink;
}

static __attribute__((noinline)) unsigned long descend(int depth, unsigned long (*end)(void))
{
	return depth ? descend(depth - 1, end) + depth : end();
}

enum { DEPTH = 6 };

static void descend_on(struct target *self)
{
	target_ready(self);
	while (getppid() > 1)
		descend(DEPTH, leaf);
}

/* Descends until the test says something. */
static void descend_until_told(struct target *self)
{
	fcntl(self->from, F_SETFL, O_NONBLOCK);
	for (char c; read(self->from, &c, 1) != 1;)
		descend(DEPTH, leaf);
	fcntl(self->from, F_SETFL, 0);
}

static unsigned long (*hot_spin)(unsigned long);

static unsigned long spin_in_library(void)
{
	return hot_spin(2000000) + 1;
}

static void load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		_exit(1);
	hot_spin = (unsigned long (*)(unsigned long))(uintptr_t)dlsym(library, "hot_spin");
	if (!hot_spin)
		_exit(1);
}

static void descend_in_library(void)
{
	while (getppid() > 1)
		descend(DEPTH, spin_in_library);
}

static void execute(const char *program, struct target *self)
{
	char to[16], from[16];

	snprintf(to, sizeof(to), "%d", self->to);
	snprintf(from, sizeof(from), "%d", self->from);
	execl(program, program, "target", to, from, (char *)NULL);
	_exit(1);
}

/* ---- what is looked for ---- */

/* A sample, as tests see it. */
struct seen {
	uint64_t time;
	pid_t pid;
	uint32_t depth, module;
	uint64_t relative, inode;
	const char *path; /* of the module of the innermost frame; "" without */
	bool cut;
};

/* Calls `see` for each sample; sums up what it returns. */
static size_t each(size_t (*see)(const struct seen *sample))
{
	struct spulse_stacks *stacks = NULL;
	const struct spulse_stack *stack;
	size_t sum = 0;

	assert_int_equal(spulse_snapshot_stacks(live.snapshot, &stacks, NULL), 0);
	while (spulse_stacks_next(stacks, &stack, NULL) > 0) {
		struct spulse_frame_iter iter = spulse_stack_frames(stack);
		struct seen sample = {.time = spulse_stack_timestamp_ns(stack),
				      .pid = spulse_stack_pid(stack),
				      .depth = spulse_stack_depth(stack),
				      .path = ""};
		struct spulse_frame_context context;
		const struct spulse_frame *frame;

		if (spulse_frame_iter_next_context(&iter, &context)) {
			sample.relative = context.file_relative_ip;
			sample.module = context.frame->module_id;
			if (context.module) {
				sample.path = spulse_module_path(context.module);
				sample.inode = spulse_module_inode(context.module);
			}
		}
		while ((frame = spulse_frame_iter_next(&iter)))
			sample.cut |= spulse_frame_is_truncated_marker(frame);
		sum += see(&sample);
	}
	spulse_stacks_free(stacks);
	return sum;
}

static const char *wanted; /* end of a module's path */

static bool is_in(const struct seen *sample, const char *end)
{
	size_t n = strlen(sample->path), m = strlen(end);

	return n >= m && !strcmp(sample->path + n - m, end);
}

static size_t is_wanted(const struct seen *sample)
{
	return is_in(sample, wanted);
}

static size_t is_wanted_and_whole(const struct seen *sample)
{
	return is_in(sample, wanted) && sample->depth >= DEPTH + 2 && !sample->cut;
}

static size_t is_wanted_and_cut(const struct seen *sample)
{
	return is_in(sample, wanted) && sample->cut;
}

/*
 * At least so many samples end in a module of that name. No stack is cut, and they are whole but
 * for the few taken before or between the descents.
 */
static void expect_whole(const char *path_end, size_t least)
{
	size_t n, whole;

	wanted = path_end;
	n = each(is_wanted);
	whole = each(is_wanted_and_whole);
	if (n < least || whole < n - n / 20 || each(is_wanted_and_cut))
		fail_msg("%s: %zu samples, %zu of them whole", path_end, n, whole);
}

/* ---- libraries ---- */

static void load_when_told(struct target *self)
{
	target_ready(self);
	descend_until_told(self);
	load(in_folder("late.so"));
	descend_in_library();
}

static uint64_t last_before, first_after;

static size_t note_order(const struct seen *sample)
{
	if (is_in(sample, "/late.so"))
		first_after = first_after ? first_after : sample->time;
	else if (is_in(sample, "test_mappings") && !first_after)
		last_before = sample->time;
	return 0;
}

static void a_library_that_is_loaded_late_has_a_module_from_then_on(void **state)
{
	(void)state;
	copy_file(HOTLIB, in_folder("late.so"));
	live.target = target_start(load_when_told);
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS());
	live_poll_until(10);
	target_tell(&live.target);
	live_poll_for(400);
	live_finish();
	expect_whole("/late.so", 10);
	last_before = first_after = 0;
	each(note_order);
	assert_true(last_before > 0 && first_after > last_before);
}

static void load_first(struct target *self)
{
	load(in_folder("replaced.so"));
	target_ready(self);
	descend_in_library();
}

static uint64_t wanted_inode;

static size_t has_wanted_inode(const struct seen *sample)
{
	return is_in(sample, wanted) && sample->inode == wanted_inode;
}

static void a_replaced_library_is_the_old_file(void **state)
{
	const char *library = in_folder("replaced.so"), *newer = in_folder("newer.so");
	struct stat st;

	(void)state;
	if (geteuid() != 0)
		skip(); /* nobody else can open what has no name */
	copy_file(HOTLIB, library);
	assert_int_equal(stat(library, &st), 0);
	live.target = target_start(load_first);
	copy_file(HOTLIB, newer);
	assert_int_equal(truncate(newer, 512), 0);
	assert_int_equal(rename(newer, library), 0);
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS());
	live_poll_until(20);
	live_finish();
	expect_whole("/replaced.so (deleted)", 10);
	wanted_inode = st.st_ino;
	assert_int_equal(each(has_wanted_inode), each(is_wanted));
}

enum { LIBRARIES = 300 };

static void load_many(struct target *self)
{
	static unsigned long (*spins[LIBRARIES])(unsigned long);

	for (int i = 0; i < LIBRARIES; i++) {
		char name[32];

		snprintf(name, sizeof(name), "many-%d.so", i);
		load(in_folder(name));
		spins[i] = hot_spin;
	}
	target_ready(self);
	for (size_t i = 0; getppid() > 1; i++) {
		hot_spin = spins[i % LIBRARIES];
		descend(DEPTH, spin_in_library);
	}
}

static size_t is_whole(const struct seen *sample)
{
	return sample->depth >= DEPTH + 2 && !sample->cut && sample->module != SPULSE_NO_MODULE;
}

static size_t one(const struct seen *sample)
{
	(void)sample;
	return 1;
}

static void three_hundred_libraries_are_no_problem(void **state)
{
	size_t before;

	(void)state;
	for (int i = 0; i < LIBRARIES; i++) {
		char name[32];

		snprintf(name, sizeof(name), "many-%d.so", i);
		copy_file(HOTLIB, in_folder(name));
	}
	live.target = target_start(load_many);
	before = open_descriptors();
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS());
	live_poll_for(1500);
	/* Images hold at most one descriptor each, and 256 of them are kept for later. */
	assert_true(open_descriptors() < before + 2 * LIBRARIES);
	live_finish();
	wanted = ".so";
	assert_true(each(is_wanted) > 50);
	assert_int_equal(each(is_whole), each(one));
}

/* ---- code that moves ---- */

enum { PAGE = 4096 };

/* Counts its argument down. */
static const uint8_t loop[] = {
#if defined(__x86_64__)
	0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3,
#elif defined(__aarch64__)
	0x00, 0x04, 0x00, 0xf1, 0xe1, 0xff, 0xff, 0x54, 0xc0, 0x03, 0x5f, 0xd6,
#endif
};

static void write_pages(int fd, int pages)
{
	for (int i = 0; i < pages; i++)
		if (pwrite(fd, loop, sizeof(loop), i * PAGE) != sizeof(loop))
			abort();
	if (ftruncate(fd, pages * PAGE) < 0)
		abort();
}

static int make_pages(const char *name, int pages)
{
	int fd = open(in_folder(name), O_RDWR | O_CREAT, 0700);

	write_pages(fd, pages);
	return fd;
}

static void run_page(const uint8_t *page)
{
	((void (*)(long))(uintptr_t)page)(3000000);
}

static void run_pages_until_told(struct target *self, const uint8_t *pages, int count)
{
	fcntl(self->from, F_SETFL, O_NONBLOCK);
	for (char c; read(self->from, &c, 1) != 1;)
		for (int i = 0; i < count; i++)
			run_page(pages + i * PAGE);
	fcntl(self->from, F_SETFL, 0);
}

static void map_over_the_middle(struct target *self)
{
	int whole = make_pages("whole.bin", 3), middle = make_pages("middle.bin", 1);
	uint8_t *pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, whole, 0);

	target_ready(self);
	run_pages_until_told(self, pages, 3);
	if (mmap(pages + PAGE, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, middle, 0) ==
	    MAP_FAILED)
		_exit(1);
	run_pages_until_told(self, pages, 3);
}

static uint32_t old_module;
static size_t by_page[3], by_part[3];

static size_t sort_by_part(const struct seen *sample)
{
	size_t page = sample->relative / PAGE;

	if (is_in(sample, "/middle.bin") && page == 0) {
		by_part[1]++;
	} else if (is_in(sample, "/whole.bin") && page < 3) {
		if (old_module == SPULSE_NO_MODULE)
			old_module = sample->module;
		if (sample->module == old_module)
			by_page[page]++;
		else
			by_part[page]++;
	}
	return 0;
}

static void a_mapping_over_the_middle_of_another_leaves_its_sides(void **state)
{
	(void)state;
	live.target = target_start(map_over_the_middle);
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS());
	live_poll_for(400);
	target_tell(&live.target);
	live_poll_for(500);
	live_finish();
	old_module = SPULSE_NO_MODULE;
	memset(by_page, 0, sizeof(by_page));
	memset(by_part, 0, sizeof(by_part));
	each(sort_by_part);
	for (int i = 0; i < 3; i++)
		assert_true(by_page[i] > 0 && by_part[i] > 0);
	assert_true(spulse_source_module_count(live.source) >= 4);
}

static void map_code_when_told(struct target *self)
{
	uint8_t *pages =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = memfd_create("made-up", 0);

	target_ready(self);
	descend_until_told(self);
	write_pages(fd, 1);
	run_pages_until_told(self, mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0), 1);
	memcpy(pages, loop, sizeof(loop));
	mprotect(pages, PAGE, PROT_READ | PROT_EXEC);
	for (;;)
		run_page(pages);
}

static size_t is_at_its_address(const struct seen *sample)
{
	return is_in(sample, "//anon") && sample->relative > 1 << 16;
}

static void code_without_a_file_that_comes_later_is_a_module(void **state)
{
	(void)state;
	live.target = target_start(map_code_when_told);
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS());
	target_tell(&live.target);
	live_poll_for(300);
	target_tell(&live.target);
	live_poll_for(300);
	live_finish();
	wanted = "/memfd:made-up (deleted)";
	assert_true(each(is_wanted) > 10);
	wanted = "//anon";
	assert_true(each(is_wanted) > 10);
	assert_int_equal(each(is_at_its_address), each(is_wanted));
}

/* ---- programs ---- */

static void execute_when_told(struct target *self)
{
	target_ready(self);
	descend_until_told(self);
	execute(in_folder("program"), self);
}

static uint32_t switches;
static bool in_program;

static size_t count_switches(const struct seen *sample)
{
	bool now = is_in(sample, "/program");

	if (!now && !is_in(sample, "/test_mappings"))
		return 0;
	switches += now != in_program;
	in_program = now;
	return 0;
}

/* The file goes while the program runs; what the kernel reported before keeps its name. */
static void a_program_executed_in_place_takes_new_modules(void **state)
{
	char c;

	(void)state;
	copy_file("/proc/self/exe", in_folder("program"));
	live.target = target_start(execute_when_told);
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS());
	live_poll_until(20);
	target_tell(&live.target);
	assert_int_equal(read(live.target.from, &c, 1), 1);
	live_poll_for(20);
	assert_int_equal(unlink(in_folder("program")), 0);
	live_poll_for(400);
	live_finish();
	expect_whole("/test_mappings", 10);
	expect_whole("/program", 10);
	switches = 0;
	in_program = false;
	each(count_switches);
	assert_int_equal(switches, 1);
}

static void execute_at_once(struct target *self)
{
	execute(in_folder("program"), self);
}

static void a_program_deleted_while_it_runs_is_unwound(void **state)
{
	(void)state;
	copy_file("/proc/self/exe", in_folder("program"));
	live.target = target_start(execute_at_once);
	assert_int_equal(unlink(in_folder("program")), 0);
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS());
	live_poll_until(20);
	live_finish();
	expect_whole("/program (deleted)", 10);
}

/* Where only the target sees its program. */
static void execute_in_mount_namespace(struct target *self)
{
	char program[128];

	snprintf(program, sizeof(program), "%s/program", folder);
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", folder, "tmpfs", 0, NULL) < 0)
		_exit(1);
	copy_file("/proc/self/exe", program);
	execute(program, self);
}

static void execute_in_chroot(struct target *self)
{
	char root[128];

	snprintf(root, sizeof(root), "%s/root", folder);
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mkdir(root, 0700) < 0 || mount("/", root, NULL, MS_BIND | MS_REC, NULL) < 0 ||
	    chroot(root) < 0 || chdir("/") < 0)
		_exit(1);
	copy_file("/proc/self/exe", "/tmp/test-mappings-chroot");
	execute("/tmp/test-mappings-chroot", self);
}

static void a_program_of_another_mount_namespace_is_unwound(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	live.target = target_start(execute_in_mount_namespace);
	assert_int_equal(access(in_folder("program"), F_OK), -1);
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS());
	live_poll_until(20);
	live_finish();
	expect_whole("/program", 10);
}

static void a_program_in_a_chroot_is_unwound(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	unlink("/tmp/test-mappings-chroot");
	live.target = target_start(execute_in_chroot);
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS());
	live_poll_until(20);
	live_finish();
	unlink("/tmp/test-mappings-chroot");
	expect_whole("/test-mappings-chroot", 10);
}

/* ---- children and names ---- */

static void fork_when_told(struct target *self)
{
	load(in_folder("both.so"));
	target_ready(self);
	target_listen(self);
	if (fork() == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	descend_in_library();
}

static uint32_t module_of_parent, module_of_child;

static size_t note_modules(const struct seen *sample)
{
	if (is_in(sample, "/both.so"))
		*(sample->pid == live.target.pid ? &module_of_parent : &module_of_child) =
			sample->module;
	return 0;
}

static void a_forked_child_has_modules_of_its_own_and_whole_stacks(void **state)
{
	(void)state;
	copy_file(HOTLIB, in_folder("both.so"));
	live.target = target_start(fork_when_told);
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS(.follow = SPULSE_FOLLOW_NEW));
	target_tell(&live.target);
	live_poll_for(800);
	live_finish();
	expect_whole("/both.so", 20);
	module_of_parent = module_of_child = SPULSE_NO_MODULE;
	each(note_modules);
	assert_true(module_of_parent != SPULSE_NO_MODULE && module_of_child != SPULSE_NO_MODULE);
	assert_int_not_equal(module_of_parent, module_of_child);
}

static void rename_when_told(struct target *self)
{
	target_ready(self);
	descend_until_told(self);
	prctl(PR_SET_NAME, "renamed");
	descend_on(self);
}

static uint32_t only_module;

static size_t has_another_module(const struct seen *sample)
{
	if (!is_in(sample, "/test_mappings"))
		return 0;
	if (only_module == SPULSE_NO_MODULE)
		only_module = sample->module;
	return sample->module != only_module;
}

static void a_new_name_of_the_leader_keeps_its_modules(void **state)
{
	char c;

	(void)state;
	live.target = target_start(rename_when_told);
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS());
	live_poll_until(10);
	target_tell(&live.target);
	assert_int_equal(read(live.target.from, &c, 1), 1);
	live_poll_for(200);
	live_finish();
	only_module = SPULSE_NO_MODULE;
	assert_int_equal(each(has_another_module), 0);
	expect_whole("/test_mappings", 15);
}

/* ---- the kernel's own ---- */

static unsigned long ask_the_time(void)
{
	struct timespec now;
	unsigned long sum = 0;

	for (int i = 0; i < 100000; i++) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		sum += now.tv_nsec;
	}
	return sum;
}

static void ask_the_time_on(struct target *self)
{
	target_ready(self);
	while (getppid() > 1)
		descend(DEPTH, ask_the_time);
}

static void the_vdso_is_unwound(void **state)
{
	(void)state;
	live.target = target_start(ask_the_time_on);
	live_attach(SPULSE_ATTACH_STOP, LIVE_OPTIONS());
	live_poll_until(100);
	live_finish();
	expect_whole("[vdso]", 10);
}

int main(int argc, char **argv)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_library_that_is_loaded_late_has_a_module_from_then_on),
		TEST(a_replaced_library_is_the_old_file),
		TEST(three_hundred_libraries_are_no_problem),
		TEST(a_mapping_over_the_middle_of_another_leaves_its_sides),
		TEST(code_without_a_file_that_comes_later_is_a_module),
		TEST(a_program_executed_in_place_takes_new_modules),
		TEST(a_program_deleted_while_it_runs_is_unwound),
		TEST(a_program_of_another_mount_namespace_is_unwound),
		TEST(a_program_in_a_chroot_is_unwound),
		TEST(a_forked_child_has_modules_of_its_own_and_whole_stacks),
		TEST(a_new_name_of_the_leader_keeps_its_modules),
		TEST(the_vdso_is_unwound),
	};

	if (argc == 4 && !strcmp(argv[1], "target")) {
		struct target self = {.to = atoi(argv[2]), .from = atoi(argv[3])};

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		descend_on(&self);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
