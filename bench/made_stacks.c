/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "made_stacks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MODULES = 32, FRAMES_PER_MODULE = 512, MODULE_SIZE = 1 << 20, FANOUT = 3 };

static uint64_t mixed(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static uint64_t next_random(struct made_stacks *made)
{
	return mixed(made->random += 0x9e3779b97f4a7c15u);
}

/* The frame of a node of the tree: one of a bounded number, so that frames come again. */
static struct spulse_frame frame_of(uint64_t node)
{
	uint64_t number = mixed(node) % (MODULES * FRAMES_PER_MODULE);
	uint64_t rel = 0x1000 + number / MODULES * (MODULE_SIZE / 2 / FRAMES_PER_MODULE);

	return (struct spulse_frame){.file_relative_ip = rel, .module_id = number % MODULES,
				     .mode = SPULSE_FRAME_USER};
}

/* The path of stack i: few branches near the root, then its own way. */
static void make_stack(struct made_stacks *made, uint64_t i, bool apart)
{
	uint64_t depth = made->options.depth / 2 + mixed(i) % made->options.depth, node = 1, choice;
	struct spulse_frame *frames = made->frames + i * made->options.depth * 2;

	choice = apart ? mixed(i + 1) : i + 1;
	made->depths[i] = depth ? depth : 1;
	for (uint64_t level = 0; level < made->depths[i]; level++) {
		node = mixed(node * 31 + choice % FANOUT + (apart ? i << 32 : 0));
		choice /= FANOUT;
		frames[made->depths[i] - 1 - level] = frame_of(node);
	}
	/* A leaf of its own. */
	frames[0] = frame_of(i * 7919);
}

bool made_stacks_new(struct made_stacks *made, const struct made_options *options, bool apart)
{
	*made = (struct made_stacks){
		.options = *options,
		.frames = calloc(options->stacks * options->depth * 2, sizeof(*made->frames)),
		.depths = calloc(options->stacks, sizeof(*made->depths)),
	};
	for (uint64_t i = 0; made->frames && made->depths && i < options->stacks; i++)
		make_stack(made, i, apart);
	return made->frames && made->depths;
}

void made_stacks_free(struct made_stacks *made)
{
	free(made->frames);
	free(made->depths);
}

int made_writer_new(const struct made_options *options, const struct spulse_output *output,
		    void *data, struct spulse_spool_writer **writer_out, struct spulse_error **err)
{
	const struct spulse_spool_header header = {
		.size = sizeof(header), .format = options->format, .interval = 1000000};
	char path[64];
	uint32_t id;
	int r = spulse_spool_writer_new(output, data, &header, writer_out, err);

	for (uint64_t i = 0; r == 0 && i < MODULES; i++) {
		struct spulse_module_fields module = {
			.size = sizeof(module), .pid = 1000, .start = 0x7f0000000000 + (i << 24),
			.end = 0x7f0000000000 + (i << 24) + MODULE_SIZE, .inode = 100 + i,
			.device_major = 8, .device_minor = 1, .path = path};

		module.path_len = snprintf(path, sizeof(path), "/usr/lib/libmade%" PRIu64 ".so", i);
		r = spulse_spool_writer_module(*writer_out, &module, &id, err);
	}
	return r;
}

/* The smaller of two even choices: the first stacks are the hot ones. */
uint64_t made_pick(struct made_stacks *made)
{
	uint64_t a = next_random(made) % made->options.stacks, b = next_random(made) % made->options.stacks;

	return a < b ? a : b;
}

struct spulse_sample made_sample(struct made_stacks *made)
{
	uint64_t number = made->samples++;
	struct spulse_sample sample = {made->ns, 1000, 1000 + number % made->options.threads};

	made->ns += 90000 + mixed(number) % 20000;
	return sample;
}

const struct spulse_frame *made_frames(const struct made_stacks *made, uint64_t stack)
{
	return made->frames + stack * made->options.depth * 2;
}

bool made_parse(struct made_options *options, int argc, char **argv)
{
	int option;

	*options = (struct made_options){
		.samples = 1200000, .stacks = 4096, .depth = 32, .threads = 8, .format = 4};
	while ((option = getopt(argc, argv, "n:s:d:t:f:r:")) != -1) {
		uint64_t *number = option == 'n' ? &options->samples : option == 's' ? &options->stacks
				   : option == 'd' ? &options->depth : option == 't' ? &options->threads
				   : option == 'f' ? &options->format
				   : option == 'r' ? &options->rate : NULL;

		if (!number)
			return false;
		*number = strtoull(optarg, NULL, 10);
	}
	options->path = argv[optind];
	return options->stacks && options->depth && options->threads;
}
