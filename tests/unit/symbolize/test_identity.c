/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Which file on this host is the one that was recorded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/image.h"
#include "symkit.h"

static bool has_backend(void)
{
	return spulse_native_default();
}

static void other_inode_is_refused(void **state)
{
	struct kit kit;
	uint32_t id;

	(void)state;
	if (!has_backend())
		skip();
	kit_open(&kit);
	id = kit_foreign_module(&kit, 0x10000, 0x11200, kit_elf(&kit, "lib.so", "abcd"));
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x11004));
	kit_read(&kit, NULL);
	assert_string_equal(kit_name(kit_frame(&kit, 0)), "lib.so+0x1004");
	assert_non_null(strstr(kit_report(&kit, 0), "another file"));
	kit_close(&kit);
}

static void equal_build_id_is_the_file(void **state)
{
	struct kit kit;
	uint32_t id;

	(void)state;
	if (!has_backend())
		skip();
	kit_open(&kit);
	id = kit_foreign_module(&kit, 0x10000, 0x11200, kit_elf(&kit, "lib.so", "abcd"));
	kit_annotate(&kit, -1, "build-id/0", "61626364");
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x11004));
	/* A fork's copy of the mapping has no annotation of its own. */
	id = kit_foreign_module(&kit, 0x10000, 0x11200, kit_path(&kit, "lib.so"));
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x11104));
	kit_read(&kit, NULL);
	assert_string_equal(kit_name(kit_frame(&kit, 0)), "alpha");
	assert_string_equal(kit_name(kit_frame(&kit, 1)), "beta");
	kit_close(&kit);
}

static void other_build_id_is_refused(void **state)
{
	struct kit kit;
	uint32_t id;

	(void)state;
	if (!has_backend())
		skip();
	kit_open(&kit);
	/* By its numbers the file would do: it was rewritten in place. */
	id = kit_module(&kit, KIT_PID, 0x10000, 0x11200, kit_elf(&kit, "lib.so", "abcd"));
	kit_annotate(&kit, -1, "build-id/0", "61626365");
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x11004));
	kit_read(&kit, NULL);
	assert_string_equal(kit_name(kit_frame(&kit, 0)), "lib.so+0x1004");
	assert_non_null(strstr(kit_report(&kit, 0), "build ID is 61626364, recorded was 61626365"));
	assert_true(spulse_resolved_is_cacheable(kit_resolve(&kit, 0)));
	kit_close(&kit);
}

static void missing_build_id_is_refused(void **state)
{
	struct kit kit;
	uint32_t id;

	(void)state;
	if (!has_backend())
		skip();
	kit_open(&kit);
	id = kit_module(&kit, KIT_PID, 0x10000, 0x11200, kit_elf(&kit, "lib.so", NULL));
	kit_annotate(&kit, -1, "build-id/0", "61626365");
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x11004));
	kit_read(&kit, NULL);
	assert_string_equal(kit_name(kit_frame(&kit, 0)), "lib.so+0x1004");
	assert_non_null(strstr(kit_report(&kit, 0), "absent"));
	kit_close(&kit);
}

/* Only annotations of the recording count, and only whole ones. */
static void odd_annotations_are_ignored(void **state)
{
	struct kit kit;
	uint32_t id;

	(void)state;
	if (!has_backend())
		skip();
	kit_open(&kit);
	id = kit_module(&kit, KIT_PID, 0x10000, 0x11200, kit_elf(&kit, "lib.so", "abcd"));
	kit_annotate(&kit, KIT_PID, "build-id/0", "0000");
	kit_annotate(&kit, -1, "build-id/", "0000");
	kit_annotate(&kit, -1, "build-id/0x", "0000");
	kit_annotate(&kit, -1, "build-id/99999999999999999999999", "0000");
	kit_annotate(&kit, -1, "build-id/4000000", "0000");
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x11004));
	kit_read(&kit, NULL);
	assert_string_equal(kit_name(kit_frame(&kit, 0)), "alpha");
	kit_close(&kit);
}

static void files_below_a_system_root(void **state)
{
	struct spulse_symbolizer_options options;
	char root[64];
	struct kit kit;
	uint32_t id;

	(void)state;
	if (!has_backend())
		skip();
	kit_open(&kit);
	snprintf(root, sizeof(root), "%s", kit.dir);
	kit_elf(&kit, "good.so", "abcd");
	kit_elf(&kit, "bad.so", "efgh");
	kit_elf(&kit, "unknown.so", "ijkl");
	id = kit_foreign_module(&kit, 0x10000, 0x11200, "/good.so");
	kit_annotate(&kit, -1, "build-id/0", "61626364");
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x11004));
	id = kit_foreign_module(&kit, 0x10000, 0x11200, "/bad.so");
	kit_annotate(&kit, -1, "build-id/2", "61626364");
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x11004));
	id = kit_foreign_module(&kit, 0x10000, 0x11200, "/unknown.so");
	KIT_SAMPLE(&kit, KIT_PID, kit_pinned(id, 0x10000, 0x11004));
	options = kit_options(&kit, NULL, NULL);
	options.sysroot = root;
	kit_read(&kit, &options);
	assert_string_equal(kit_name(kit_frame(&kit, 0)), "alpha");
	assert_string_equal(kit_name(kit_frame(&kit, 1)), "bad.so+0x1004");
	assert_string_equal(kit_name(kit_frame(&kit, 2)), "alpha");
	assert_non_null(strstr(kit_report(&kit, 2), "not verified"));
	kit_close(&kit);
}

/* ---- vDSO ---- */

/* Address and build ID of this process's own; false without one. */
static bool own_vdso(uint64_t *start, uint64_t *size, char id_text[64])
{
	const struct image_request request = { .path = "[vdso]" };
	struct image *image = NULL;
	const uint8_t *id;
	size_t len;

	*start = getauxval(AT_SYSINFO_EHDR);
	if (!*start || image_open(NULL, &request, &image, NULL) != IMAGE_OK)
		return false;
	*size = image_size(image);
	id = image_build_id(image, &len);
	for (size_t i = 0; id && i < len && i < 31; i++)
		sprintf(id_text + 2 * i, "%02x", id[i]);
	image_unref(image);
	return id;
}

static void vdso_of_a_recording(void **state)
{
	uint64_t start = 0, size = 0;
	char id_text[64];

	(void)state;
	if (!has_backend() || !own_vdso(&start, &size, id_text))
		skip();
	/* 0: nothing is known; 1: the same kernel's; 2: another kernel's; 3: of a live process. */
	for (int which = 0; which < 4; which++) {
		pid_t pid = which == 3 ? getpid() : KIT_PID;
		bool named = false;
		struct kit kit;
		uint32_t id;

		kit_open(&kit);
		id = kit_module(&kit, pid, start, start + size, "[vdso]");
		if (which == 1)
			kit_annotate(&kit, -1, "build-id/0", id_text);
		if (which == 2)
			kit_annotate(&kit, -1, "build-id/0", "0123");
		for (uint64_t at = 0; at < size; at += 16)
			KIT_SAMPLE(&kit, pid, kit_pinned(id, start, start + at));
		kit_read(&kit, NULL);
		for (uint64_t i = 0; i < size / 16 && !named; i++)
			named = spulse_resolved_frame_origin(kit_frame(&kit, i)) ==
				SPULSE_ORIGIN_ELF;
		assert_int_equal(named, which & 1);
		kit_close(&kit);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_inode_is_refused),
		cmocka_unit_test(equal_build_id_is_the_file),
		cmocka_unit_test(other_build_id_is_refused),
		cmocka_unit_test(missing_build_id_is_refused),
		cmocka_unit_test(odd_annotations_are_ignored),
		cmocka_unit_test(files_below_a_system_root),
		cmocka_unit_test(vdso_of_a_recording),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
