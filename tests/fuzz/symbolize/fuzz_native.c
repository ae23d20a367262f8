/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* The built-in backend over a damaged program: symbols, units, entries, lines and split parts. */
#include "../driver.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>

#include "symbolize/native/program.h"
#include "symbolize/native/split.h"

enum { LOOKUPS = 48 };

static void look_up(struct program *program, const struct image_section *section)
{
	struct spulse_native_results *results = NULL;
	uint64_t step = section->size / LOOKUPS + 1;

	if (spulse_native_results_new(1, &results, NULL) < 0)
		return;
	for (uint64_t i = 0; i < LOOKUPS && i * step < section->size; i++)
		program_resolve(program, section->addr + i * step, false, 0, results, NULL);
	for (size_t i = 0; i < spulse_native_results_count(results, 0) && i < 4096; i++)
		if (!spulse_native_results_at(results, 0, i)->name)
			abort();
	spulse_native_results_free(results);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct image_debug_options options = { .roots = NULL };
	const struct image_section *sections;
	struct strbuf story = { 0 };
	struct program *program;
	struct image *image;
	size_t count;

	if (image_from_bytes(data, size, "fuzz", &image, NULL) < 0)
		return 0;
	program = program_new(image, "/nowhere/at/all");
	if (!program)
		abort();
	program_load(program, &options);
	/* The split parts of the file itself, as if they were a package. */
	if (program->dwarf && !program->dwarf->package)
		program->dwarf->package = image_ref(image);
	sections = image_sections(image, &count);
	for (size_t i = 0, seen = 0; i < count && seen < 4; i++) {
		if (!(sections[i].flags & SHF_EXECINSTR))
			continue;
		look_up(program, &sections[i]);
		seen++;
	}
	program_describe(program, &story);
	strbuf_release(&story);
	program_free(program);
	image_unref(image);
	return 0;
}

/* Small programs that the build made, one for each version of DWARF and way to store it. */
uint8_t *fuzz_seed(unsigned int i, size_t *len)
{
	static const char *const paths[] = { FUZZ_SEEDS };
	uint8_t *bytes;
	FILE *file;
	long size;

	if (i >= sizeof(paths) / sizeof(*paths))
		return NULL;
	file = fopen(paths[i], "rbe");
	if (!file || fseek(file, 0, SEEK_END) || (size = ftell(file)) < 0)
		abort();
	rewind(file);
	bytes = malloc(size);
	if (!bytes || fread(bytes, 1, size, file) != (size_t)size)
		abort();
	fclose(file);
	*len = size;
	return bytes;
}
