/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spool_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stackpulse/error.h>

#include "base/util.h"
#include "spool/spool.h"

enum { MODEL_DEPTH = 14, MODEL_DEEP = 200, MODEL_PIDS = 3 };

static uint64_t below(struct spool_model *model, uint64_t limit)
{
	return random_below(&model->rng, limit);
}

static bool chance(struct spool_model *model, unsigned int one_in)
{
	return below(model, one_in) == 0;
}

/* Any number of bits, so that every length of number occurs. */
static uint64_t any_number(struct spool_model *model)
{
	return random_u64(&model->rng) >> below(model, 64);
}

void spool_model_init(struct spool_model *model, uint64_t seed, enum spulse_spool_format format)
{
	*model = (struct spool_model){ .rng.state = seed };
	model->header = (struct spulse_spool_header){
		.size = sizeof(model->header),
		.format = format,
		.start_timestamp_us = any_number(model),
		.interval = any_number(model),
	};
	if (format == SPULSE_SPOOL_FORMAT_4 && chance(model, 2)) {
		model->header.has_clock_origin = 1;
		model->header.monotonic_ns = any_number(model);
		model->header.wall.seconds = (int64_t)any_number(model) * (chance(model, 2) ? 1 : -1);
		model->header.wall.nanoseconds = below(model, 1000000000);
	}
}

void spool_model_release(struct spool_model *model)
{
	for (size_t i = 0; i < model->annotations.len; i++)
		strbuf_release(&model->annotations.data[i].value);
	vec_free(&model->modules);
	vec_free(&model->frames);
	vec_free(&model->samples);
	vec_free(&model->pythons);
	vec_free(&model->annotations);
}

static void must(int result)
{
	if (result < 0)
		fail_msg("the writer failed: %s", spulse_error_kind_name(-result));
}

/* A small space of addresses, so that ranges overlap and addresses hit. */
static uint64_t any_address(struct spool_model *model)
{
	return chance(model, 20) ? any_number(model) : 0x1000 + below(model, 64) * 16;
}

static void any_module(struct spool_model *model, struct model_module *m)
{
	uint64_t start = any_address(model), size = below(model, 24) * 16;

	memset(m, 0, sizeof(*m));
	m->fields = (struct spulse_module_fields){
		.size = sizeof(m->fields),
		.pid = 1 + below(model, MODEL_PIDS),
		.is_kernel = chance(model, 4),
		.start = start,
		.end = chance(model, 15) ? start - below(model, 3) : start + size,
		.file_offset = chance(model, 10) ? UINT64_MAX - below(model, 64) : below(model, 4096),
		.inode = any_number(model),
		.inode_generation = any_number(model),
		.device_major = any_number(model),
		.device_minor = any_number(model),
	};
	m->fields.path_len = snprintf(m->path, sizeof(m->path), "/lib/m%u.so",
				      (unsigned int)below(model, 1000));
	if (model->header.format == SPULSE_SPOOL_FORMAT_4 && chance(model, 5))
		m->path[below(model, m->fields.path_len)] = (char)below(model, 256);
}

static void any_symbols(struct spool_model *model, struct model_module *m)
{
	static const char *const names[] = { "", "f", "outer::inner<int>", "\xd0\xba\xd0\xbb" };
	uint64_t start = m->fields.start;

	m->fields.is_kernel = 0;
	m->is_jit = true;
	while (m->symbol_count < ARRAY_LEN(m->symbols) && start < m->fields.end) {
		struct spulse_jit_symbol *symbol = &m->symbols[m->symbol_count++];

		symbol->start = start;
		symbol->end = start + 1 + below(model, m->fields.end - start);
		symbol->name = names[below(model, ARRAY_LEN(names))];
		symbol->name_len = strlen(symbol->name);
		start += below(model, 32);
	}
}

static void add_module(struct spool_model *model, struct spulse_spool_writer *writer)
{
	struct model_module m;
	uint32_t id;

	any_module(model, &m);
	m.fields.path = m.path;
	if (model->header.format == SPULSE_SPOOL_FORMAT_4 && chance(model, 4)) {
		any_symbols(model, &m);
		must(spulse_spool_writer_jit_module(writer, &m.fields, m.symbols, m.symbol_count,
						    &id, NULL));
	} else {
		must(spulse_spool_writer_module(writer, &m.fields, &id, NULL));
	}
	assert_int_equal(id, model->modules.len);
	assert_true(vec_push(&model->modules, m));
}

static void retire_module(struct spool_model *model, struct spulse_spool_writer *writer)
{
	uint32_t id;

	if (!model->modules.len)
		return;
	id = below(model, model->modules.len);
	must(spulse_spool_writer_retire_module(writer, id, NULL));
	model->modules.data[id].retired = true;
}

static void retire_process(struct spool_model *model, struct spulse_spool_writer *writer)
{
	pid_t pid = 1 + below(model, MODEL_PIDS + 1);

	must(spulse_spool_writer_retire_process(writer, pid, NULL));
	for (size_t i = 0; i < model->modules.len; i++) {
		struct model_module *m = &model->modules.data[i];

		if (!m->fields.is_kernel && m->fields.pid == pid)
			m->retired = true;
	}
}

static void add_python(struct spool_model *model, struct spulse_spool_writer *writer)
{
	struct spulse_python_runtime record = {
		.timestamp_ns = any_number(model),
		.pid = 1 + below(model, INT32_MAX),
		.is_python = chance(model, 2),
	};

	must(spulse_spool_writer_python_runtime(writer, &record, NULL));
	assert_true(vec_push(&model->pythons, record));
}

static void add_annotation(struct spool_model *model, struct spulse_spool_writer *writer)
{
	struct model_annotation a = { .pid = chance(model, 2) ? -1 : 1 + (pid_t)below(model, 3) };
	struct model_module m = { .is_annotation = true };
	size_t len = chance(model, 8) ? below(model, 9000) : below(model, 40);
	uint32_t id;

	snprintf(a.key, sizeof(a.key), "%s/%u", chance(model, 2) ? "comm" : "x=y+",
		 (unsigned int)below(model, 100));
	for (size_t i = 0; i < len; i++)
		strbuf_putc(&a.value, chance(model, 3) ? below(model, 256) : 'a' + below(model, 26));
	must(spool_writer_annotate(writer, a.pid, a.key, a.value.data ? a.value.data : "", len,
				   NULL));
	assert_true(vec_push(&model->annotations, a));
	/* How many records a value takes is the writer's business: ask by the next module's id. */
	m.fields = (struct spulse_module_fields){ .size = sizeof(m.fields), .is_kernel = 1 };
	m.fields.path = "end";
	m.fields.path_len = 3;
	must(spulse_spool_writer_module(writer, &m.fields, &id, NULL));
	while (model->modules.len < id)
		assert_true(vec_push(&model->modules, m));
	m.is_annotation = false;
	strcpy(m.path, "end");
	assert_true(vec_push(&model->modules, m));
}

static bool pin(struct spool_model *model, struct spulse_frame *frame)
{
	const struct model_module *m;
	uint32_t id;

	if (!model->modules.len)
		return false;
	id = below(model, model->modules.len);
	m = &model->modules.data[id];
	if (m->fields.start >= m->fields.end)
		return false;
	frame->module_id = id;
	frame->mode = m->fields.is_kernel ? SPULSE_FRAME_KERNEL : SPULSE_FRAME_USER;
	frame->abs_ip = m->fields.start + below(model, m->fields.end - m->fields.start);
	return !add_overflows(frame->abs_ip - m->fields.start, m->fields.file_offset,
			      &frame->file_relative_ip);
}

static struct spulse_frame any_frame(struct spool_model *model)
{
	struct spulse_frame frame = { 0 };

	if (chance(model, 12))
		return spulse_frame_truncated_marker();
	if (chance(model, 2) && pin(model, &frame))
		return frame;
	frame = (struct spulse_frame){
		.abs_ip = any_address(model),
		.module_id = SPULSE_NO_MODULE,
		.mode = chance(model, 3) ? SPULSE_FRAME_KERNEL : SPULSE_FRAME_USER,
	};
	frame.file_relative_ip = frame.abs_ip;
	return frame;
}

/* The newest module that is there now and holds the address. */
static uint32_t bind_now(const struct spool_model *model, pid_t pid,
			 const struct spulse_frame *frame)
{
	uint64_t sum;

	if (frame->mode == SPULSE_FRAME_TRUNCATED || frame->module_id != SPULSE_NO_MODULE)
		return frame->module_id;
	for (size_t i = model->modules.len; i-- > 0;) {
		const struct model_module *m = &model->modules.data[i];
		bool kernel = frame->mode == SPULSE_FRAME_KERNEL;

		if (m->retired || kernel != (m->fields.is_kernel != 0) ||
		    (!kernel && m->fields.pid != pid) || frame->abs_ip < m->fields.start ||
		    frame->abs_ip >= m->fields.end)
			continue;
		return add_overflows(frame->abs_ip - m->fields.start, m->fields.file_offset, &sum)
			       ? SPULSE_NO_MODULE
			       : (uint32_t)i;
	}
	return SPULSE_NO_MODULE;
}

/* As a user gives it, or as the recorder does: by numbers. */
static int give_sample(struct spool_model *model, struct spulse_spool_writer *writer,
		       const struct spulse_sample *sample, const struct spulse_frame *frames,
		       size_t count)
{
	uint32_t numbers[MODEL_DEEP];

	if (chance(model, 2))
		return spulse_spool_writer_sample(writer, sample, frames, count, NULL);
	for (size_t i = 0; i < count; i++) {
		numbers[i] = spool_writer_intern(writer, &frames[i]);
		assert_int_not_equal(numbers[i], UINT32_MAX);
	}
	return spool_writer_sample(writer, sample, numbers, count, NULL);
}

static void add_sample(struct spool_model *model, struct spulse_spool_writer *writer)
{
	struct model_sample s = { .first_frame = model->frames.len };
	struct spulse_frame frames[MODEL_DEEP];
	size_t again = 0, count = below(model, chance(model, 30) ? MODEL_DEEP : MODEL_DEPTH);
	int64_t delta;
	int r;

	/* Often the outer part of an earlier stack, so that stacks share nodes. */
	if (model->samples.len && chance(model, 2)) {
		const struct model_sample *old =
			&model->samples.data[below(model, model->samples.len)];

		again = MIN(count, old->frame_count);
		for (size_t i = 0; i < again; i++)
			frames[count - 1 - i] =
				model->frames.data[old->first_frame + old->frame_count - 1 - i].frame;
	}
	for (size_t i = 0; i < count - again; i++)
		frames[i] = any_frame(model);
	s.frame_count = count;
	s.sample = (struct spulse_sample){
		.timestamp_ns = chance(model, 10) ? any_number(model)
						  : model->last_ns + below(model, 100000),
		.pid = 1 + below(model, MODEL_PIDS),
		.tid = 1 + below(model, 5),
	};
	r = give_sample(model, writer, &s.sample, frames, count);
	if (count && __builtin_sub_overflow(s.sample.timestamp_ns, model->last_ns, &delta)) {
		assert_int_equal(r, -SPULSE_ERROR_INVALID_INPUT);
		return;
	}
	must(r);
	if (!count)
		return;
	model->last_ns = s.sample.timestamp_ns;
	for (size_t i = 0; i < count; i++)
		assert_true(vec_push(&model->frames,
				     (struct model_frame){ frames[i],
							   bind_now(model, s.sample.pid,
								    &frames[i]) }));
	assert_true(vec_push(&model->samples, s));
}

void spool_model_step(struct spool_model *model, struct spulse_spool_writer *writer)
{
	switch (below(model, 24)) {
	case 0:
	case 1:
		add_module(model, writer);
		break;
	case 2:
		retire_module(model, writer);
		break;
	case 3:
		if (chance(model, 3))
			retire_process(model, writer);
		break;
	case 4:
		add_python(model, writer);
		break;
	case 5:
		if (chance(model, 4))
			add_annotation(model, writer);
		break;
	default:
		add_sample(model, writer);
	}
}

static void check_frame(const struct spool_model *model, const struct model_frame *expected,
			const struct spulse_frame_context *context)
{
	const struct model_module *m;

	assert_memory_equal(context->frame, &expected->frame, sizeof(struct spulse_frame));
	if (expected->module == SPULSE_NO_MODULE) {
		assert_null(context->module);
		assert_int_equal(context->file_relative_ip, expected->frame.abs_ip);
		return;
	}
	m = &model->modules.data[expected->module];
	assert_non_null(context->module);
	assert_int_equal(spulse_module_id(context->module), expected->module);
	assert_int_equal(context->file_relative_ip,
			 expected->frame.abs_ip - m->fields.start + m->fields.file_offset);
}

void spool_model_check_stack(const struct spool_model *model, size_t index,
			     const struct spulse_stack *stack)
{
	const struct model_sample *s = &model->samples.data[index];
	struct spulse_frame_iter iter = spulse_stack_frames(stack);
	struct spulse_frame_context context;

	assert_memory_equal(spulse_stack_sample(stack), &s->sample, sizeof(s->sample));
	assert_int_equal(spulse_stack_depth(stack), s->frame_count);
	for (size_t i = 0; i < s->frame_count; i++) {
		assert_true(spulse_frame_iter_next_context(&iter, &context));
		check_frame(model, &model->frames.data[s->first_frame + i], &context);
	}
	assert_false(spulse_frame_iter_next_context(&iter, &context));
}

static void check_module(const struct spulse_source *source, uint32_t id,
			 const struct model_module *expected)
{
	const struct spulse_module *m = spulse_source_module_by_id(source, id);
	const struct spulse_module_fields *f = &expected->fields;
	const struct spulse_jit_symbol *symbols;
	size_t count;

	if (expected->is_annotation)
		return;
	assert_int_equal(spulse_module_pid(m), f->is_kernel ? -1 : f->pid);
	assert_int_equal(spulse_module_start(m), f->start);
	assert_int_equal(spulse_module_end(m), f->end);
	assert_int_equal(spulse_module_file_offset(m), f->file_offset);
	assert_int_equal(spulse_module_inode(m), f->inode);
	assert_int_equal(spulse_module_inode_generation(m), f->inode_generation);
	assert_int_equal(spulse_module_device_major(m), f->device_major);
	assert_int_equal(spulse_module_device_minor(m), f->device_minor);
	assert_int_equal(spulse_module_path_len(m), f->path_len);
	assert_memory_equal(spulse_module_path(m), expected->path, f->path_len);
	symbols = spulse_source_jit_symbols(source, id, &count);
	assert_int_equal(symbols != NULL, expected->is_jit);
	assert_int_equal(count, expected->symbol_count);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(symbols[i].start, expected->symbols[i].start);
		assert_int_equal(symbols[i].end, expected->symbols[i].end);
		assert_string_equal(symbols[i].name, expected->symbols[i].name);
	}
}

static void check_annotations(const struct spool_model *model, const struct spulse_source *source)
{
	const struct spulse_annotation *found;
	size_t count;

	found = spulse_source_annotations(source, &count);
	assert_int_equal(count, model->annotations.len);
	for (size_t i = 0; i < count; i++) {
		const struct model_annotation *a = &model->annotations.data[i];

		assert_int_equal(found[i].pid, a->pid);
		assert_string_equal(found[i].key, a->key);
		assert_int_equal(found[i].value_len, a->value.len);
		if (a->value.len)
			assert_memory_equal(found[i].value, a->value.data, a->value.len);
		assert_int_equal(found[i].value[a->value.len], 0);
	}
}

void spool_model_check_source(const struct spool_model *model, const struct spulse_source *source)
{
	const struct spulse_python_runtime *pythons;
	struct spulse_wall_time wall;
	uint64_t start, interval, monotonic;
	size_t count, plain = 0;

	assert_int_equal(spulse_source_format(source), model->header.format);
	spulse_source_raw_header(source, &start, &interval);
	assert_int_equal(start, model->header.start_timestamp_us);
	assert_int_equal(interval, model->header.interval);
	assert_int_equal(spulse_source_clock_origin(source, &monotonic, &wall),
			 model->header.has_clock_origin);
	if (model->header.has_clock_origin) {
		assert_int_equal(monotonic, model->header.monotonic_ns);
		assert_int_equal(wall.seconds, model->header.wall.seconds);
		assert_int_equal(wall.nanoseconds, model->header.wall.nanoseconds);
	}
	assert_int_equal(spulse_source_raw_module_count(source), model->modules.len);
	for (uint32_t id = 0; id < model->modules.len; id++) {
		check_module(source, id, &model->modules.data[id]);
		if (!model->modules.data[id].is_annotation)
			assert_int_equal(spulse_module_id(spulse_source_module(source, plain++)), id);
	}
	assert_int_equal(spulse_source_module_count(source), plain);
	assert_null(spulse_source_module(source, plain));
	pythons = spulse_source_python_runtimes(source, &count);
	assert_int_equal(count, model->pythons.len);
	if (count)
		assert_memory_equal(pythons, model->pythons.data, count * sizeof(*pythons));
	check_annotations(model, source);
}
