/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TESTS_LIB_SPOOL_MODEL_H
#define TESTS_LIB_SPOOL_MODEL_H

#include <stackpulse/spool.h>

#include "base/strbuf.h"
#include "base/vec.h"
#include "random.h"

/*
 * A random recording: events are given to a writer and kept, each sample with the modules that its
 * frames must bind to. The binding is found the slow way, by looking at all modules.
 */

struct model_module {
	struct spulse_module_fields fields;
	char path[64];
	bool retired, is_jit, is_annotation;
	struct spulse_jit_symbol symbols[4];
	size_t symbol_count;
};

struct model_frame {
	struct spulse_frame frame;
	uint32_t module; /* that it binds to, or SPULSE_NO_MODULE */
};

struct model_sample {
	struct spulse_sample sample;
	size_t first_frame, frame_count; /* in model.frames, innermost first */
};

struct model_annotation {
	pid_t pid;
	char key[32];
	struct strbuf value;
};

struct spool_model {
	struct random rng;
	struct spulse_spool_header header;
	VEC(struct model_module) modules;
	VEC(struct model_frame) frames;
	VEC(struct model_sample) samples;
	VEC(struct spulse_python_runtime) pythons;
	VEC(struct model_annotation) annotations;
	uint64_t last_ns;
};

void spool_model_init(struct spool_model *model, uint64_t seed, enum spulse_spool_format format);
void spool_model_release(struct spool_model *model);
/* Does one random thing and gives it to the writer, which must accept what is valid. */
void spool_model_step(struct spool_model *model, struct spulse_spool_writer *writer);

/* Compare with what a reader says; a difference fails the running test. */
void spool_model_check_stack(const struct spool_model *model, size_t index,
			     const struct spulse_stack *stack);
void spool_model_check_source(const struct spool_model *model,
			      const struct spulse_source *source);

#endif
