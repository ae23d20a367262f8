/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Lines of the kernel come from its own image, and from no other's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "image/image.h"
#include "symkit.h"

static const char wanted[] = "do_the_work";
static const uint64_t text = 0xffffffff81000000;

/* Where the image has the function, and which build it is. */
struct kernel_image {
	uint64_t value, size;
	char build_id[64];
};

static bool note_function(void *data, const struct image_symbol *symbol)
{
	struct kernel_image *kernel = data;

	if (!strcmp(symbol->name, wanted)) {
		kernel->value = symbol->value;
		kernel->size = symbol->size;
	}
	return !kernel->value;
}

static struct kernel_image look(void)
{
	struct kernel_image kernel = { 0 };
	struct image *image = NULL;
	const uint8_t *id;
	size_t len;

	assert_int_equal(image_open_path(FAKE_KERNEL, &image, NULL), 0);
	assert_int_equal(image_symbols(image, false, note_function, &kernel, NULL), 0);
	id = image_build_id(image, &len);
	assert_non_null(id);
	for (size_t i = 0; i < len && i < 31; i++)
		sprintf(kernel.build_id + 2 * i, "%02x", id[i]);
	assert_true(kernel.size > 0);
	image_unref(image);
	return kernel;
}

/* A copy in a folder of debug files, by its build ID. */
static void install(const struct kit *kit, const struct kernel_image *kernel)
{
	static uint8_t bytes[1 << 20];
	FILE *file = fopen(FAKE_KERNEL, "rbe");
	char name[128];
	size_t len;

	assert_non_null(file);
	len = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	assert_int_equal(mkdir(kit_path(kit, ".build-id"), 0700), 0);
	snprintf(name, sizeof(name), ".build-id/%.2s", kernel->build_id);
	assert_int_equal(mkdir(kit_path(kit, name), 0700), 0);
	snprintf(name, sizeof(name), ".build-id/%.2s/%s.debug", kernel->build_id,
		 kernel->build_id + 2);
	kit_file(kit, name, bytes, len);
}

struct kernel_case {
	const char *what;
	const char *build_id; /* recorded; NULL: nothing is; "": the image's */
	uint64_t moved;	      /* further than the rest of the kernel */
	bool has_lines;
};

static const struct kernel_case cases[] = {
	{ "the same build", "", 0, true },
	{ "the same build, moved by pages", "", 0x7000, true },
	{ "another build", "0102030405060708", 0, false },
	{ "a build that nobody noted", NULL, 0, false },
	{ "a function that begins elsewhere", "", 0x10, false },
};

/* Frames of every address of the function: counts those with lines, and those with inlined calls. */
static void count_levels(struct kit *kit, uint64_t size, size_t *lines, size_t *inlined)
{
	*lines = *inlined = 0;
	for (uint64_t i = 0; i < size; i++) {
		const struct spulse_resolved *resolved = kit_resolve(kit, i);
		size_t n = spulse_resolved_count(resolved);
		const struct spulse_resolved_frame *outer = spulse_resolved_at(resolved, n - 1);
		const struct spulse_resolved_frame *inner = spulse_resolved_at(resolved, 0);

		/* The function itself is the same in any case. */
		assert_string_equal(kit_name(outer), wanted);
		assert_int_equal(spulse_resolved_frame_offset(outer), i);
		assert_string_equal(spulse_resolved_frame_module(outer), "[kernel]");
		assert_int_equal(spulse_resolved_frame_kind(inner), SPULSE_FRAME_KIND_KERNEL);
		assert_int_equal(spulse_resolved_frame_origin(inner), SPULSE_ORIGIN_KERNEL_SYMBOLS);
		*lines += spulse_resolved_frame_line(inner) > 0;
		*inlined += n == 2 && !strcmp(kit_name(inner), "step_inside");
	}
}

static void lines_of_the_right_image_only(void **state)
{
	struct kernel_image kernel = look();

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct kernel_case *c = &cases[i];
		uint64_t start = text + kernel.value + c->moved;
		struct spulse_symbolizer_options options;
		size_t lines, inlined;
		char symbols[256];
		struct kit kit;

		kit_open(&kit);
		install(&kit, &kernel);
		if (c->build_id)
			kit_annotate(&kit, -1, "kernel-build-id",
				     *c->build_id ? c->build_id : kernel.build_id);
		for (uint64_t at = 0; at < kernel.size; at++)
			KIT_SAMPLE(&kit, KIT_PID, kit_kernel(start + at));
		snprintf(symbols, sizeof(symbols), "%llx T _text\n%llx T %s\n%llx T next\n",
			 (unsigned long long)text, (unsigned long long)start, wanted,
			 (unsigned long long)(start + kernel.size));
		options = kit_kallsyms(&kit, symbols);
		options.debug_dirs = kit.dir;
		kit_read(&kit, &options);
		count_levels(&kit, kernel.size, &lines, &inlined);
		if (c->has_lines ? lines != kernel.size || !inlined : lines || inlined)
			fail_msg("%s: %zu lines and %zu inlined calls of %d bytes", c->what, lines,
				 inlined, (int)kernel.size);
		kit_close(&kit);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(lines_of_the_right_image_only) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
