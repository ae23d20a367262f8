/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "symkit.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "elf_builder.h"
#include "spool/spool.h"

/* ---- files ---- */

void kit_open(struct kit *kit)
{
	const struct spulse_spool_header header = { .size = sizeof(header) };
	int *fd = malloc(sizeof(*fd));

	*kit = (struct kit){ .time = 1000 };
	strcpy(kit->dir, "/tmp/symkit-XXXXXX");
	assert_non_null(mkdtemp(kit->dir));
	snprintf(kit->spool, sizeof(kit->spool), "%s/spool", kit->dir);
	assert_non_null(fd);
	*fd = open(kit->spool, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(*fd >= 0);
	assert_int_equal(spulse_spool_writer_new(&spool_fd_output, fd, &header, &kit->writer, NULL),
			 0);
}

void kit_close(struct kit *kit)
{
	char command[128];

	spulse_stacks_free(kit->stacks);
	spulse_symbolizer_free(kit->symbolizer);
	spulse_snapshot_free(kit->snapshot);
	spulse_tail_free(kit->tail);
	spulse_spool_writer_free(kit->writer);
	snprintf(command, sizeof(command), "rm -r -- %s", kit->dir);
	assert_int_equal(system(command), 0);
}

const char *kit_path(const struct kit *kit, const char *name)
{
	static char paths[4][256];
	static unsigned int next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", kit->dir, name);
	return path;
}

void kit_file(const struct kit *kit, const char *name, const void *bytes, size_t len)
{
	assert_true(write_test_file(kit_path(kit, name), bytes, len));
}

void kit_perf_map(const struct kit *kit, pid_t pid, const char *text)
{
	char name[64];

	snprintf(name, sizeof(name), "perf-%d.map", pid);
	kit_file(kit, name, text, strlen(text));
}

const char *kit_elf(const struct kit *kit, const char *name, const char *id)
{
	static const uint8_t code[0x200];
	const struct elf_builder_symbol symbols[] = {
		{ .name = "alpha", .value = 0x1000, .size = 0x100, .type = STT_FUNC,
		  .bind = STB_GLOBAL, .shndx = 1 },
		{ .name = "beta", .value = 0x1100, .size = 0x100, .type = STT_FUNC,
		  .bind = STB_GLOBAL, .shndx = 1 },
	};
	struct elf_builder b;

	elf_builder_init(&b, ET_DYN, EM_X86_64);
	elf_builder_section(&b, &(struct elf_builder_section){
		.name = ".text", .flags = SHF_ALLOC | SHF_EXECINSTR, .addr = 0x1000,
		.offset = 0x1000, .data = code, .len = sizeof(code) });
	elf_builder_segment(&b, &(struct elf_builder_segment){
		.flags = PF_R | PF_X, .filesz = 0x1200, .memsz = 0x1200, .align = 0x1000 });
	elf_builder_symbols(&b, false, symbols, 2);
	if (id)
		elf_builder_build_id(&b, id, strlen(id));
	assert_true(elf_builder_write(&b, kit_path(kit, name)));
	return kit_path(kit, name);
}

/* ---- the spool ---- */

static uint32_t add_module(struct kit *kit, bool kernel, pid_t pid, uint64_t start, uint64_t end,
			   const char *path)
{
	const struct spulse_module_fields fields = {
		.size = sizeof(fields), .pid = pid, .is_kernel = kernel, .start = start,
		.end = end, .path = path, .path_len = strlen(path),
	};
	uint32_t id;

	assert_int_equal(spulse_spool_writer_module(kit->writer, &fields, &id, NULL), 0);
	return id;
}

uint32_t kit_module(struct kit *kit, pid_t pid, uint64_t start, uint64_t end, const char *path)
{
	return add_module(kit, false, pid, start, end, path);
}

uint32_t kit_kernel_module(struct kit *kit, uint64_t start, uint64_t end, const char *path)
{
	return add_module(kit, true, 0, start, end, path);
}

uint32_t kit_foreign_module(struct kit *kit, uint64_t start, uint64_t end, const char *path)
{
	const struct spulse_module_fields fields = {
		.size = sizeof(fields), .pid = KIT_PID, .start = start, .end = end,
		.inode = 123456789012, .device_major = 4000, .device_minor = 77, .path = path,
		.path_len = strlen(path),
	};
	uint32_t id;

	assert_int_equal(spulse_spool_writer_module(kit->writer, &fields, &id, NULL), 0);
	return id;
}

void kit_annotate(struct kit *kit, pid_t pid, const char *key, const char *value)
{
	assert_int_equal(spool_writer_annotate(kit->writer, pid, key, value, strlen(value), NULL),
			 0);
}

struct spulse_frame kit_user(uint64_t ip)
{
	return (struct spulse_frame){ ip, ip, SPULSE_NO_MODULE, SPULSE_FRAME_USER };
}

struct spulse_frame kit_kernel(uint64_t ip)
{
	return (struct spulse_frame){ ip, ip, SPULSE_NO_MODULE, SPULSE_FRAME_KERNEL };
}

struct spulse_frame kit_pinned(uint32_t module, uint64_t start, uint64_t ip)
{
	return (struct spulse_frame){ ip - start, ip, module, SPULSE_FRAME_USER };
}

void kit_sample(struct kit *kit, pid_t pid, const struct spulse_frame *frames, size_t count)
{
	const struct spulse_sample sample = { .timestamp_ns = kit->time++, .pid = pid, .tid = pid };

	assert_int_equal(spulse_spool_writer_sample(kit->writer, &sample, frames, count, NULL), 0);
}

/* ---- reading ---- */

struct spulse_symbolizer_options kit_options(const struct kit *kit,
					     const struct spulse_native_backend *backend, void *data)
{
	return (struct spulse_symbolizer_options){
		.size = sizeof(struct spulse_symbolizer_options),
		.kernel_symbols = SPULSE_KERNEL_SYMBOLS_NONE,
		.perf_map_dir = kit->dir,
		.native = backend,
		.native_data = data,
	};
}

struct spulse_symbolizer_options kit_kallsyms(const struct kit *kit, const char *text)
{
	struct spulse_symbolizer_options options = kit_options(kit, NULL, NULL);

	kit_file(kit, "kallsyms", text, strlen(text));
	options.kernel_symbols = SPULSE_KERNEL_SYMBOLS_FILE;
	options.kernel_symbols_path = kit_path(kit, "kallsyms");
	return options;
}

void kit_read(struct kit *kit, const struct spulse_symbolizer_options *options)
{
	struct spulse_symbolizer_options usual = kit_options(kit, NULL, NULL);

	assert_int_equal(spulse_spool_writer_finish(kit->writer, NULL), 0);
	assert_int_equal(spulse_snapshot_open(kit->spool, &kit->snapshot, NULL), 0);
	assert_int_equal(spulse_symbolizer_new(spulse_snapshot_source(kit->snapshot),
					       options ? options : &usual, &kit->symbolizer, NULL),
			 0);
}

const struct spulse_resolved *kit_resolve(struct kit *kit, size_t index)
{
	const struct spulse_resolved *resolved = NULL;
	const struct spulse_stack *stack = NULL;

	assert_int_equal(spulse_snapshot_stack(kit->snapshot, index, &stack, NULL), 1);
	assert_int_equal(spulse_symbolizer_resolve(kit->symbolizer, stack, &resolved, NULL), 0);
	return resolved;
}

const struct spulse_resolved_frame *kit_frame(struct kit *kit, size_t index)
{
	const struct spulse_resolved *resolved = kit_resolve(kit, index);

	assert_int_equal(spulse_resolved_count(resolved), 1);
	return spulse_resolved_at(resolved, 0);
}

const char *kit_name(const struct spulse_resolved_frame *frame)
{
	static char name[4096];

	return spulse_resolved_frame_display_name(frame, name, sizeof(name));
}

const char *kit_name_at(const struct spulse_resolved *resolved, size_t at)
{
	return kit_name(spulse_resolved_at(resolved, at));
}

const char *kit_report(struct kit *kit, size_t index)
{
	const char *text = NULL;

	assert_int_equal(spulse_symbolizer_module_report(kit->symbolizer, index, &text, NULL), 0);
	return text;
}

void kit_follow(struct kit *kit, const struct spulse_symbolizer_options *options)
{
	struct spulse_symbolizer_options usual = kit_options(kit, NULL, NULL);

	assert_int_equal(spulse_spool_writer_flush(kit->writer, NULL), 0);
	assert_int_equal(spulse_tail_open(kit->spool, &kit->tail, NULL), 0);
	assert_int_equal(spulse_symbolizer_new(spulse_tail_source(kit->tail),
					       options ? options : &usual, &kit->symbolizer, NULL),
			 0);
}

const struct spulse_invalidation *kit_update(struct kit *kit)
{
	const struct spulse_invalidation *invalidation = NULL;

	assert_int_equal(spulse_spool_writer_flush(kit->writer, NULL), 0);
	spulse_stacks_free(kit->stacks);
	kit->stacks = NULL;
	assert_int_equal(spulse_tail_poll(kit->tail, &kit->batch, NULL), 0);
	assert_int_equal(spulse_symbolizer_update(kit->symbolizer, kit->batch, &invalidation, NULL),
			 0);
	assert_int_equal(spulse_batch_stacks(kit->batch, &kit->stacks, NULL), 0);
	return invalidation;
}

const struct spulse_resolved *kit_next(struct kit *kit)
{
	const struct spulse_resolved *resolved = NULL;
	const struct spulse_stack *stack = NULL;
	int r = spulse_stacks_next(kit->stacks, &stack, NULL);

	assert_true(r >= 0);
	if (r)
		assert_int_equal(spulse_symbolizer_resolve(kit->symbolizer, stack, &resolved, NULL),
				 0);
	return resolved;
}

const struct spulse_resolved_frame *kit_next_frame(struct kit *kit)
{
	const struct spulse_resolved *resolved = kit_next(kit);

	assert_non_null(resolved);
	assert_int_equal(spulse_resolved_count(resolved), 1);
	return spulse_resolved_at(resolved, 0);
}

/* ---- a backend ---- */

static int fake_open(void *data, pid_t pid, void **state_out, struct spulse_error **err)
{
	struct fake_backend *fake = data;

	fake->opens++;
	if (fake->fail_open && fake->fail_open--) {
		if (err)
			*err = spulse_error_new(SPULSE_ERROR_IO, 0, NULL, "fake", 17,
						"cannot open for %d", (int)pid);
		return -SPULSE_ERROR_IO;
	}
	*state_out = fake;
	return 0;
}

static int fake_symbolize(void *state, const struct spulse_native_lookup *const *lookups,
			  size_t count, struct spulse_native_results *results,
			  struct spulse_error **err)
{
	struct fake_backend *fake = state;

	fake->calls++;
	fake->lookups += count;
	fake->last_count = count;
	for (size_t i = 0; i < count; i++) {
		char name[32];

		if (i < 64) {
			fake->addresses[i] = spulse_native_lookup_address(lookups[i]);
			fake->image_addresses[i] = spulse_native_lookup_image_address(lookups[i]);
		}
		for (unsigned int k = 0; !fake->silent && k < (fake->levels ? fake->levels : 1);
		     k++) {
			struct spulse_native_symbol symbol = {
				.size = sizeof(symbol), .name = name, .module = fake->module,
				.line = 10 + k, .column = 3, .offset = i, .flags = fake->flags,
			};
			int r;

			snprintf(name, sizeof(name), "level%u", k);
			r = spulse_native_results_add(results, i, &symbol, err);
			if (r < 0)
				return r;
		}
	}
	/* A failure counts even after results were added. */
	if (fake->fail_calls && fake->fail_calls--) {
		if (err)
			*err = spulse_error_new(SPULSE_ERROR_IO, 0, NULL, "fake", 18, "no luck");
		return -SPULSE_ERROR_IO;
	}
	return 0;
}

static void fake_retire(void *state, const struct spulse_native_module *module)
{
	struct fake_backend *fake = state;

	(void)module;
	fake->retires++;
}

static void fake_close(void *state)
{
	struct fake_backend *fake = state;

	fake->closes++;
}

static int fake_refresh(void *state, uint64_t *generation_out, struct spulse_error **err)
{
	struct fake_backend *fake = state;

	fake->refreshes++;
	if (fake->fail_refresh && !--fake->fail_refresh) {
		if (err)
			*err = spulse_error_new(SPULSE_ERROR_IO, 0, NULL, "fake", 19, "not now");
		return -SPULSE_ERROR_IO;
	}
	*generation_out = fake->generation;
	return 0;
}

static void fake_release(void *data)
{
	struct fake_backend *fake = data;

	fake->releases++;
}

const struct spulse_native_backend fake_backend_vtable = {
	.size = sizeof(struct spulse_native_backend),
	.name = "fake",
	.open = fake_open,
	.symbolize = fake_symbolize,
	.retire_module = fake_retire,
	.close = fake_close,
	.refresh = fake_refresh,
	.release = fake_release,
};

void kit_read_fake(struct kit *kit, struct fake_backend *fake)
{
	struct spulse_symbolizer_options options = kit_options(kit, &fake_backend_vtable, fake);

	kit_read(kit, &options);
}

void kit_follow_fake(struct kit *kit, struct fake_backend *fake)
{
	struct spulse_symbolizer_options options = kit_options(kit, &fake_backend_vtable, fake);

	kit_follow(kit, &options);
}
