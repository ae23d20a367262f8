/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "../codemap/codemap.h"
#include "resolved.h"

enum spulse_frame_kind spulse_resolved_frame_kind(const struct spulse_resolved_frame *frame)
{
	return frame->kind;
}

enum spulse_symbol_origin spulse_resolved_frame_origin(const struct spulse_resolved_frame *frame)
{
	return frame->origin;
}

unsigned int spulse_resolved_frame_flags(const struct spulse_resolved_frame *frame)
{
	return frame->flags;
}

uint64_t spulse_resolved_frame_pc(const struct spulse_resolved_frame *frame)
{
	return frame->pc;
}

bool spulse_resolved_frame_has_symbol(const struct spulse_resolved_frame *frame)
{
	return frame->name;
}

const char *spulse_resolved_frame_name(const struct spulse_resolved_frame *frame)
{
	return frame->name;
}

size_t spulse_resolved_frame_name_len(const struct spulse_resolved_frame *frame)
{
	return frame->name ? strpool_len(frame->name) : 0;
}

const char *spulse_resolved_frame_display_name(const struct spulse_resolved_frame *frame,
					       char *buf, size_t len)
{
	size_t n;

	if (!len)
		return buf;
	if (!frame->name) {
		snprintf(buf, len, "<0x%llx>", (unsigned long long)frame->pc);
		return buf;
	}
	n = MIN(strpool_len(frame->name), len - 1);
	memcpy(buf, frame->name, n);
	buf[n] = 0;
	return buf;
}

size_t spulse_resolved_frame_display_name_len(const struct spulse_resolved_frame *frame)
{
	if (frame->name)
		return strpool_len(frame->name);
	return snprintf(NULL, 0, "<0x%llx>", (unsigned long long)frame->pc);
}

static const char *path_basename(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

const char *spulse_resolved_frame_module(const struct spulse_resolved_frame *frame)
{
	return frame->module ? frame->module : "";
}

const char *spulse_resolved_frame_module_basename(const struct spulse_resolved_frame *frame)
{
	return path_basename(spulse_resolved_frame_module(frame));
}

bool spulse_resolved_frame_is_python_runtime(const struct spulse_resolved_frame *frame)
{
	return frame->flags & SPULSE_FRAME_PYTHON_RUNTIME;
}

const char *spulse_resolved_frame_file(const struct spulse_resolved_frame *frame)
{
	return frame->file;
}

const char *spulse_resolved_frame_basename(const struct spulse_resolved_frame *frame)
{
	return frame->file ? path_basename(frame->file) : NULL;
}

int64_t spulse_resolved_frame_line(const struct spulse_resolved_frame *frame)
{
	return frame->line;
}

int64_t spulse_resolved_frame_column(const struct spulse_resolved_frame *frame)
{
	return frame->column;
}

/* Perf maps, today's only source of Python frames, carry no end of a location. */
int64_t spulse_resolved_frame_end_line(const struct spulse_resolved_frame *frame)
{
	(void)frame;
	return -1;
}

int64_t spulse_resolved_frame_end_column(const struct spulse_resolved_frame *frame)
{
	(void)frame;
	return -1;
}

int64_t spulse_resolved_frame_function_start_line(const struct spulse_resolved_frame *frame)
{
	return frame_is_nameless(frame) ? -1 : frame->function_line;
}

int64_t spulse_resolved_frame_function_start_column(const struct spulse_resolved_frame *frame)
{
	return frame_is_nameless(frame) ? -1 : frame->function_column;
}

uint64_t spulse_resolved_frame_function_start(const struct spulse_resolved_frame *frame)
{
	return frame_is_nameless(frame) ? frame->function_start : UINT64_MAX;
}

uint64_t spulse_resolved_frame_offset(const struct spulse_resolved_frame *frame)
{
	return frame->offset;
}

const char *spulse_resolved_frame_suffix(const struct spulse_resolved_frame *frame)
{
	return frame->suffix ? frame->suffix : "";
}

uint32_t spulse_resolved_frame_inline_depth(const struct spulse_resolved_frame *frame)
{
	return frame->inline_depth;
}

/* The interpreter's evaluation loop, also as the tail-calling build names its pieces. */
bool spulse_resolved_frame_is_eval_frame(const struct spulse_resolved_frame *frame)
{
	const char *name = frame->name, *suffix = frame->suffix ? frame->suffix : name;

	if (!name)
		return false;
	if (strstr(name, "PyEval_EvalFrameDefault") || strstr(name, "PyEval_EvalFrameEx"))
		return true;
	return (has_prefix(name, "_TAIL_CALL_") || has_prefix(name, "TAIL_CALL_")) &&
	       strstr(suffix, ".llvm.");
}

bool spulse_resolved_frame_should_ignore(const struct spulse_resolved_frame *frame)
{
	return frame->should_ignore;
}

int32_t spulse_resolved_frame_opcode(const struct spulse_resolved_frame *frame)
{
	(void)frame;
	return -1;
}

bool spulse_resolved_frame_is_entry(const struct spulse_resolved_frame *frame)
{
	(void)frame;
	return false;
}

bool spulse_is_python_runtime_basename(const char *name)
{
	return name && codemap_is_python_basename(name, strlen(name));
}

const char *spulse_frame_kind_name(enum spulse_frame_kind kind)
{
	static const char *const names[] = {
		[SPULSE_FRAME_KIND_UNKNOWN] = "unknown",
		[SPULSE_FRAME_KIND_NATIVE] = "native",
		[SPULSE_FRAME_KIND_PYTHON] = "python",
		[SPULSE_FRAME_KIND_KERNEL] = "kernel",
	};

	return (unsigned int)kind < ARRAY_LEN(names) ? names[kind] : "unknown";
}

const char *spulse_symbol_origin_name(enum spulse_symbol_origin origin)
{
	static const char *const names[] = {
		[SPULSE_ORIGIN_ADDRESS_ONLY] = "address-only",
		[SPULSE_ORIGIN_ELF] = "elf",
		[SPULSE_ORIGIN_PERF_MAP] = "perf-map",
		[SPULSE_ORIGIN_KERNEL_SYMBOLS] = "kernel-symbols",
		[SPULSE_ORIGIN_JIT] = "jit",
	};

	return (unsigned int)origin < ARRAY_LEN(names) ? names[origin] : "unknown";
}
