/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * unwind-vectors DIR...: walks the stack of every vector (NAME.json, NAME.stack) of each folder
 * and prints a row each. Exit 1 when a list of frames or an end differs from what must come out.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image/image.h"
#include "unwind/unwind.h"

#include "jsonread.h"

struct outcome {
	unsigned int vectors, failures;
};

static char *read_beside(const char *dir, const char *name, size_t *len)
{
	char *path = NULL, *bytes = NULL;
	FILE *f = NULL;
	long size;

	if (asprintf(&path, "%s/%s", dir, name) < 0)
		return NULL;
	f = fopen(path, "rb");
	if (f && fseek(f, 0, SEEK_END) == 0 && (size = ftell(f)) >= 0) {
		rewind(f);
		bytes = malloc((size_t)size + 1);
		if (bytes && fread(bytes, 1, (size_t)size, f) == (size_t)size) {
			bytes[size] = '\0';
			*len = (size_t)size;
		} else {
			free(bytes);
			bytes = NULL;
		}
	}
	if (f)
		fclose(f);
	free(path);
	return bytes;
}

static void read_registers(const struct json *vector, enum unw_arch arch, struct unw_regs *regs)
{
	static const char *const x86[] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi",
					  "rbp", "rsp", "r8",  "r9",  "r10", "r11",
					  "r12", "r13", "r14", "r15", "rip"};
	char name[32];

	regs->known = 0;
	for (unsigned int i = 0; i < (arch == UNW_X86_64 ? 17u : 33u); i++) {
		if (arch == UNW_X86_64)
			snprintf(name, sizeof(name), "registers.%s", x86[i]);
		else if (i < 31)
			snprintf(name, sizeof(name), "registers.x%u", i);
		else
			snprintf(name, sizeof(name), "registers.%s", i == 31 ? "sp" : "pc");
		if (!json_get(vector, name))
			continue;
		regs->value[i] = json_number(vector, name);
		regs->known |= 1ull << i;
	}
}

/* Programs lie in bin/ beside the folder of vectors. */
static bool add_mapping(struct unw_space *space, const char *dir, const struct json *m,
			struct spulse_error **err)
{
	struct unw_map map = {.start = json_number(m, "start"),
			      .end = json_number(m, "end"),
			      .bias = json_number(m, "bias")};
	struct image *image = NULL;
	char *path = NULL;
	bool done;

	if (asprintf(&path, "%s/../%s", dir, json_text(m, "file")) < 0)
		return false;
	done = image_open_path(path, &image, err) == 0 &&
	       unw_image_new(image, &map.image, err) == 0 && unw_space_map(space, &map, err) == 0;
	unw_image_unref(map.image);
	image_unref(image);
	free(path);
	return done;
}

static bool as_expected(const struct json *expected, const struct unw_result *result)
{
	const struct json *frames = json_get(expected, "frames");
	bool same = frames && frames->count == result->count;

	for (size_t i = 0; same && i < frames->count; i++) {
		const struct json *frame = &frames->children[i];
		bool exact = strcmp(json_text(frame, "kind"), "ip") == 0;

		same = result->addresses[i] == json_number(frame, "address") - !exact;
	}
	return same && (result->end == UNW_COMPLETE) ==
			       (strcmp(json_text(expected, "end"), "complete") == 0);
}

static void print_difference(const struct json *expected, const struct unw_result *result)
{
	const struct json *frames = json_get(expected, "frames");

	for (size_t i = 0; frames && (i < frames->count || i < result->count); i++) {
		printf("    ");
		if (i < frames->count)
			printf("%#llx %s %s", json_number(&frames->children[i], "address"),
			       json_text(&frames->children[i], "kind"),
			       json_text(&frames->children[i], "symbol"));
		if (i < result->count)
			printf("\tfound %#llx", (unsigned long long)result->addresses[i]);
		printf("\n");
	}
	printf("    end %s, found %s, error %d\n", json_text(expected, "end"),
	       result->end == UNW_COMPLETE ? "complete" : "truncated",
	       result->has_error ? (int)result->error : -1);
}

static bool walk(const struct json *vector, const char *dir, struct unw_space *space,
		 const uint8_t *stack, size_t stack_len, struct spulse_error **err)
{
	bool arm = strcmp(json_text(vector, "arch"), "aarch64") == 0;
	enum unw_arch arch = arm ? UNW_AARCH64 : UNW_X86_64;
	const struct json *maps = json_get(vector, "mappings");
	const struct unw_callbacks callbacks = {0};
	struct unwinder *unwinder = NULL;
	struct unw_result result;
	struct unw_regs regs;
	bool same;

	for (size_t i = 0; maps && i < maps->count; i++)
		if (!add_mapping(space, dir, &maps->children[i], err))
			return false;
	if (unwinder_new(arch, &callbacks, &unwinder, err) < 0)
		return false;
	read_registers(vector, arch, &regs);
	unw_walk(unwinder, space, &regs, stack, stack_len, &result);
	same = as_expected(json_get(vector, "expected"), &result);
	printf("%s %s %s: %u frames, %s\n", same ? "ok  " : "FAIL", json_text(vector, "arch"),
	       json_text(vector, "name"), result.count,
	       result.end == UNW_COMPLETE ? "complete" : "truncated");
	if (!same)
		print_difference(json_get(vector, "expected"), &result);
	unwinder_free(unwinder);
	return same;
}

static bool run_vector(const char *dir, const char *name)
{
	size_t len = 0, stack_len = 0;
	char *text = read_beside(dir, name, &len);
	struct json *vector = text ? json_parse(text) : NULL;
	char *stack = vector ? read_beside(dir, json_text(vector, "stack.file"), &stack_len) : NULL;
	struct spulse_error *err = NULL;
	struct unw_space *space = NULL;
	bool same = false;

	if (!stack)
		printf("FAIL %s/%s: cannot be read\n", dir, name);
	else if (unw_space_new(&space, &err) == 0)
		same = walk(vector, dir, space, (const uint8_t *)stack, stack_len, &err);
	if (err)
		printf("FAIL %s/%s: %s\n", dir, name, spulse_error_message(err));
	spulse_error_free(err);
	unw_space_free(space);
	json_free(vector);
	free(stack);
	free(text);
	return same;
}

static int is_vector(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);

	return len > 5 && strcmp(entry->d_name + len - 5, ".json") == 0;
}

static bool run_folder(const char *dir, struct outcome *outcome)
{
	struct dirent **names;
	int count = scandir(dir, &names, is_vector, alphasort);

	if (count <= 0) {
		printf("FAIL %s: no vectors\n", dir);
		return false;
	}
	for (int i = 0; i < count; i++) {
		outcome->vectors++;
		outcome->failures += !run_vector(dir, names[i]->d_name);
		free(names[i]);
	}
	free(names);
	return true;
}

int main(int argc, char **argv)
{
	struct outcome outcome = {0};
	bool found = argc > 1;

	for (int i = 1; i < argc; i++)
		found &= run_folder(argv[i], &outcome);
	printf("%u vectors, %u differ\n", outcome.vectors, outcome.failures);
	return !found || outcome.failures;
}
