/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SPOOL_FORMAT_H
#define SPULSE_SPOOL_FORMAT_H

#include <stdint.h>

/* Numbers of the SPULSE file format, versions 3 and 4. */

enum spool_tag {
	TAG_MODULE = 1,
	TAG_FRAME = 2,
	TAG_STACK_NODE = 3,
	TAG_THREAD = 4,
	TAG_SAMPLE = 5,
	TAG_PYTHON_RUNTIME = 6,
	TAG_RETIRE_PROCESS = 7,
	TAG_RETIRE_MODULE = 8,
	TAG_JIT_MODULE = 9, /* version 4 only */
};

enum {
	MAGIC_LEN = 8,
	/* Kinds of frames: even = twice the module's id. */
	FRAME_KIND_USER = 1,
	FRAME_KIND_KERNEL = 3,
	FRAME_KIND_MARKER = 5,
	JIT_SYMBOL_MAX = 1000000,
	JIT_NAME_MAX = 1 << 20,
	/* Tag and three numbers of ten bytes. */
	SMALL_RECORD_MAX = 31,
	/* Samples in one batch of a tail. */
	BATCH_SAMPLES = 16384,
	/* Ranges of samples that a replay remembers. */
	REPLAY_RANGES = 524288,
};

/* Prefix of a root node; also the one id that is never given out. */
#define NODE_ROOT UINT32_MAX
/* Module field "never retired". */
#define NEVER_RETIRED UINT32_MAX

/* What the path of an annotation begins with. */
#define ANNOTATION_PREFIX "//stackpulse/"

#endif
