/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Files that are missing, replaced or unreadable, and what a backend is shown of the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symkit.h"

/* ---- images that are not there ---- */

static void image_that_appears_is_found_at_the_second_try(void **state)
{
	struct fake_backend fake = { 0 };
	const struct spulse_resolved *resolved;
	struct spulse_frame_id first;
	struct kit kit;
	uint32_t id;

	(void)state;
	kit_open(&kit);
	id = kit_module(&kit, KIT_PID, 0x10000, 0x11200, kit_path(&kit, "lib.so"));
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x11004), kit_pinned(id, 0x10000, 0x11008));
	kit_read_fake(&kit, &fake);
	resolved = kit_resolve(&kit, 0);
	assert_string_equal(kit_name_at(resolved, 0), "lib.so+0x1004");
	assert_false(spulse_resolved_is_cacheable(resolved));
	first = spulse_resolved_id(resolved, 0);
	kit_elf(&kit, "lib.so", NULL);
	resolved = kit_resolve(&kit, 0);
	assert_string_equal(kit_name_at(resolved, 0), "level0");
	assert_true(spulse_resolved_is_cacheable(resolved));
	assert_true(spulse_resolved_id(resolved, 0).serial != first.serial);
	assert_null(spulse_symbolizer_frame(kit.symbolizer, first));
	assert_int_equal(fake.calls, 1);
	assert_int_equal(fake.last_count, 2);
	kit_close(&kit);
}

static void image_missing_twice_is_final(void **state)
{
	struct fake_backend fake = { 0 };
	const struct spulse_resolved *resolved;
	struct kit kit;
	uint32_t id;

	(void)state;
	kit_open(&kit);
	id = kit_module(&kit, KIT_PID, 0x10000, 0x11200, kit_path(&kit, "lib.so"));
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x11004));
	kit_read_fake(&kit, &fake);
	assert_false(spulse_resolved_is_cacheable(kit_resolve(&kit, 0)));
	assert_true(spulse_resolved_is_cacheable(kit_resolve(&kit, 0)));
	kit_elf(&kit, "lib.so", NULL);
	resolved = kit_resolve(&kit, 0);
	assert_string_equal(kit_name_at(resolved, 0), "lib.so+0x1004");
	assert_int_equal(fake.calls, 0);
	kit_close(&kit);
}

static void what_is_not_elf_is_final_at_once(void **state)
{
	struct fake_backend fake = { 0 };
	struct kit kit;
	uint32_t id;

	(void)state;
	kit_open(&kit);
	kit_file(&kit, "script", "#!/bin/sh\n", 10);
	id = kit_module(&kit, KIT_PID, 0x10000, 0x11200, kit_path(&kit, "script"));
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x11004));
	kit_read_fake(&kit, &fake);
	assert_true(spulse_resolved_is_cacheable(kit_resolve(&kit, 0)));
	assert_int_equal(fake.calls, 0);
	kit_close(&kit);
}

static void image_deleted_between_lookups(void **state)
{
	struct fake_backend fake = { 0 };
	struct kit kit;
	uint32_t id;

	(void)state;
	kit_open(&kit);
	id = kit_module(&kit, KIT_PID, 0x10000, 0x11200, kit_elf(&kit, "lib.so", NULL));
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x11004));
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x11008));
	kit_read_fake(&kit, &fake);
	kit_resolve(&kit, 0);
	assert_int_equal(unlink(kit_path(&kit, "lib.so")), 0);
	assert_string_equal(kit_name_at(kit_resolve(&kit, 1), 0), "lib.so+0x1008");
	assert_int_equal(fake.calls, 1);
	assert_string_equal(kit_name_at(kit_resolve(&kit, 0), 0), "level0");
	kit_close(&kit);
}

static void rewritten_file_is_another_image(void **state)
{
	struct fake_backend fake = { 0 };
	struct timespec times[2];
	struct stat st;
	struct kit kit;
	uint32_t id;
	int fd;

	(void)state;
	kit_open(&kit);
	id = kit_module(&kit, KIT_PID, 0x10000, 0x11200, kit_elf(&kit, "lib.so", NULL));
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x11004));
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x11008));
	kit_read_fake(&kit, &fake);
	kit_resolve(&kit, 0);
	/* Size and time of the last change stay what they were. */
	fd = open(kit_path(&kit, "lib.so"), O_WRONLY | O_CLOEXEC);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(pwrite(fd, "\xcc", 1, 0x1008), 1);
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	assert_int_equal(futimens(fd, times), 0);
	close(fd);
	assert_string_equal(kit_name_at(kit_resolve(&kit, 1), 0), "lib.so+0x1008");
	assert_int_equal(fake.calls, 1);
	kit_close(&kit);
}

/* ---- what a backend is shown ---- */

/* Notes what it sees, and answers for every other address. */
struct witness {
	const struct spulse_native_module *kept;
	char path[256];
	uint64_t image_ids[8];
	size_t seen;
	int fd;
};

static int witness_open(void *data, pid_t pid, void **state_out, struct spulse_error **err)
{
	(void)pid, (void)err;
	*state_out = data;
	return 0;
}

static int witness_symbolize(void *state, const struct spulse_native_lookup *const *lookups,
			     size_t count, struct spulse_native_results *results,
			     struct spulse_error **err)
{
	struct witness *witness = state;
	int r = 0;

	for (size_t i = 0; i < count && !r; i++) {
		const struct spulse_native_module *module = spulse_native_lookup_module(lookups[i]);
		const char *path = spulse_native_module_image_path(module);
		const struct spulse_native_symbol symbol = { .size = sizeof(symbol), .name = "even" };

		witness->image_ids[witness->seen++ % 8] = spulse_native_module_image_id(module);
		witness->fd = spulse_native_module_image_fd(module);
		snprintf(witness->path, sizeof(witness->path), "%s", path ? path : "");
		if (!witness->kept)
			witness->kept = spulse_native_module_ref(module);
		if (!(spulse_native_lookup_address(lookups[i]) & 1))
			r = spulse_native_results_add(results, i, &symbol, err);
	}
	return r;
}

static const struct spulse_native_backend witness_vtable = {
	.size = sizeof(witness_vtable), .name = "witness", .open = witness_open,
	.symbolize = witness_symbolize,
};

static void read_with_witness(struct kit *kit, struct witness *witness)
{
	struct spulse_symbolizer_options options = kit_options(kit, &witness_vtable, witness);

	kit_read(kit, &options);
}

/* The path leads to the file that was validated, whatever stands at its name by then. */
static void only_the_open_file_is_shown(void **state)
{
	struct witness witness = { 0 };
	struct stat shown, now;
	char name[64];
	struct kit kit;
	uint32_t id;

	(void)state;
	kit_open(&kit);
	id = kit_module(&kit, KIT_PID, 0x10000, 0x11200, kit_elf(&kit, "lib.so", "one"));
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x11100));
	read_with_witness(&kit, &witness);
	kit_resolve(&kit, 0);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", witness.fd);
	assert_string_equal(witness.path, name);
	assert_int_equal(unlink(kit_path(&kit, "lib.so")), 0);
	kit_elf(&kit, "lib.so", "two");
	assert_int_equal(stat(witness.path, &shown), 0);
	assert_int_equal(stat(kit_path(&kit, "lib.so"), &now), 0);
	assert_int_equal(shown.st_nlink, 0);
	assert_true(shown.st_ino != now.st_ino);
	spulse_native_module_unref(witness.kept);
	kit_close(&kit);
}

static void images_of_one_path_do_not_mix(void **state)
{
	struct witness witness = { 0 };
	struct spulse_module_fields fields = { .size = sizeof(fields), .pid = KIT_PID,
					       .start = 0x10000, .end = 0x11200 };
	struct stat st;
	struct kit kit;
	uint32_t ids[2];

	(void)state;
	kit_open(&kit);
	kit_elf(&kit, "lib.so", "one");
	assert_int_equal(stat(kit_path(&kit, "lib.so"), &st), 0);
	fields.path = kit_path(&kit, "lib.so");
	fields.path_len = strlen(fields.path);
	/* The same name twice: the file that is there now, and one that was there before. */
	fields.inode = st.st_ino + 1;
	assert_int_equal(spulse_spool_writer_module(kit.writer, &fields, &ids[0], NULL), 0);
	fields.inode = st.st_ino;
	fields.start += 0x100000;
	fields.end += 0x100000;
	assert_int_equal(spulse_spool_writer_module(kit.writer, &fields, &ids[1], NULL), 0);
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(ids[0], 0x10000, 0x11100),
		   kit_pinned(ids[1], 0x110000, 0x111100), kit_pinned(ids[0], 0x10000, 0x11102));
	read_with_witness(&kit, &witness);
	assert_string_equal(kit_name_at(kit_resolve(&kit, 0), 0), "lib.so+0x1100");
	assert_string_equal(kit_name_at(kit_resolve(&kit, 0), 1), "even");
	assert_string_equal(kit_name_at(kit_resolve(&kit, 0), 2), "lib.so+0x1102");
	assert_int_equal(witness.seen, 1);
	spulse_native_module_unref(witness.kept);
	kit_close(&kit);
}

static void frames_without_an_answer_keep_their_place(void **state)
{
	struct witness witness = { 0 };
	const struct spulse_resolved *resolved;
	struct kit kit;
	uint32_t id;

	(void)state;
	kit_open(&kit);
	id = kit_module(&kit, KIT_PID, 0x10000, 0x11200, kit_elf(&kit, "lib.so", NULL));
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x11101), kit_pinned(id, 0x10000, 0x11100),
		   kit_user(7), kit_pinned(id, 0x10000, 0x11103), kit_pinned(id, 0x10000, 0x11102));
	read_with_witness(&kit, &witness);
	resolved = kit_resolve(&kit, 0);
	assert_int_equal(spulse_resolved_count(resolved), 5);
	assert_string_equal(kit_name_at(resolved, 0), "lib.so+0x1101");
	assert_string_equal(kit_name_at(resolved, 1), "even");
	assert_string_equal(kit_name_at(resolved, 2), "<0x7>");
	assert_string_equal(kit_name_at(resolved, 3), "lib.so+0x1103");
	assert_string_equal(kit_name_at(resolved, 4), "even");
	assert_true(spulse_resolved_is_cacheable(resolved));
	spulse_native_module_unref(witness.kept);
	kit_close(&kit);
}

static void a_module_that_cannot_be_read_costs_its_own_names(void **state)
{
	static const char *const names[] = { "missing.so", "script", "cut.so", "fifo", "folder" };
	struct kit kit;
	uint32_t ids[5], good;

	(void)state;
	if (!spulse_native_default())
		skip();
	kit_open(&kit);
	good = kit_module(&kit, KIT_PID, 0x10000, 0x11200, kit_elf(&kit, "good.so", NULL));
	kit_file(&kit, "script", "#!/bin/sh\n", 10);
	kit_elf(&kit, "cut.so", NULL);
	assert_int_equal(truncate(kit_path(&kit, "cut.so"), 70), 0);
	assert_int_equal(mkfifo(kit_path(&kit, "fifo"), 0600), 0);
	assert_int_equal(mkdir(kit_path(&kit, "folder"), 0700), 0);
	for (uint64_t i = 0; i < 5; i++) {
		uint64_t start = 0x100000 * (i + 1);

		ids[i] = kit_module(&kit, KIT_PID, start, start + 0x1200, kit_path(&kit, names[i]));
		KIT_SAMPLE(&kit, KIT_PID, kit_pinned(ids[i], start, start + 0x1104),
			   kit_pinned(good, 0x10000, 0x11004));
	}
	kit_read(&kit, NULL);
	for (size_t i = 0; i < 5; i++) {
		const struct spulse_resolved *resolved = kit_resolve(&kit, i);
		char want[64];

		snprintf(want, sizeof(want), "%s+0x1104", names[i]);
		assert_string_equal(kit_name_at(resolved, 0), want);
		assert_string_equal(kit_name_at(resolved, 1), "alpha");
		assert_non_null(strstr(kit_report(&kit, i + 1), names[i]));
	}
	kit_close(&kit);
}

static void modules_outlive_the_call_that_showed_them(void **state)
{
	struct witness witness = { 0 };
	struct kit kit;
	uint32_t id;
	char byte;

	(void)state;
	kit_open(&kit);
	id = kit_module(&kit, KIT_PID, 0x10000, 0x11200, kit_elf(&kit, "lib.so", NULL));
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x11100));
	read_with_witness(&kit, &witness);
	kit_resolve(&kit, 0);
	kit_close(&kit);
	/* With its image: a backend may read on when everything else is gone. */
	assert_int_equal(spulse_native_module_mapping_id(witness.kept), id);
	assert_int_equal(pread(spulse_native_module_image_fd(witness.kept), &byte, 1, 1), 1);
	assert_int_equal(byte, 'E');
	spulse_native_module_unref(witness.kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(image_that_appears_is_found_at_the_second_try),
		cmocka_unit_test(image_missing_twice_is_final),
		cmocka_unit_test(what_is_not_elf_is_final_at_once),
		cmocka_unit_test(image_deleted_between_lookups),
		cmocka_unit_test(rewritten_file_is_another_image),
		cmocka_unit_test(only_the_open_file_is_shown),
		cmocka_unit_test(images_of_one_path_do_not_mix),
		cmocka_unit_test(frames_without_an_answer_keep_their_place),
		cmocka_unit_test(a_module_that_cannot_be_read_costs_its_own_names),
		cmocka_unit_test(modules_outlive_the_call_that_showed_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
