/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Writes a made-up recording of any size, or measures the writer with it. Stacks are leaves of one
 * random tree, so that they share callers as real ones do; some are far more frequent than others.
 * usage: spool_gen [-n SAMPLES] [-s STACKS] [-d DEPTH] [-t THREADS] [-f 3|4] OUT
 *        spool_gen -w [-s STACKS] [-d DEPTH] ...     nanoseconds of the writer
 */
#include <stackpulse/stackpulse.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MODULES = 32, FRAMES_PER_MODULE = 512, MODULE_SIZE = 1 << 20, FANOUT = 3 };

struct options {
	uint64_t samples, stacks, depth, threads, format;
	bool measure;
	const char *path;
};

struct generator {
	struct options options;
	struct spulse_spool_writer *writer;
	struct spulse_frame *frames; /* options.stacks times options.depth * 2, innermost first */
	uint32_t *depths;
	uint64_t random;
	uint64_t ns;
};

static ssize_t write_some(void *data, const void *bytes, size_t len)
{
	ssize_t n = write(*(int *)data, bytes, len);

	return n < 0 ? -errno : n;
}

/* Takes everything and keeps nothing. */
static ssize_t write_nothing(void *data, const void *bytes, size_t len)
{
	(void)bytes;
	*(uint64_t *)data += len;
	return len;
}

static uint64_t mixed(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static uint64_t next_random(struct generator *g)
{
	return mixed(g->random += 0x9e3779b97f4a7c15u);
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
static void make_stack(struct generator *g, uint64_t i, bool apart)
{
	uint64_t depth = g->options.depth / 2 + mixed(i) % g->options.depth, node = 1, choice;
	struct spulse_frame *frames = g->frames + i * g->options.depth * 2;

	choice = apart ? mixed(i + 1) : i + 1;
	g->depths[i] = depth ? depth : 1;
	for (uint64_t level = 0; level < g->depths[i]; level++) {
		node = mixed(node * 31 + choice % FANOUT + (apart ? i << 32 : 0));
		choice /= FANOUT;
		frames[g->depths[i] - 1 - level] = frame_of(node);
	}
	/* A leaf of its own. */
	frames[0] = frame_of(i * 7919);
}

static bool make_stacks(struct generator *g, bool apart)
{
	uint64_t stacks = g->options.stacks;

	g->frames = calloc(stacks * g->options.depth * 2, sizeof(*g->frames));
	g->depths = calloc(stacks, sizeof(*g->depths));
	for (uint64_t i = 0; g->frames && g->depths && i < stacks; i++)
		make_stack(g, i, apart);
	return g->frames && g->depths;
}

static int start(struct generator *g, const struct spulse_output *output, void *data,
		 struct spulse_error **err)
{
	const struct spulse_spool_header header = {
		.size = sizeof(header), .format = g->options.format, .interval = 1000000};
	char path[64];
	uint32_t id;
	int r = spulse_spool_writer_new(output, data, &header, &g->writer, err);

	for (uint64_t i = 0; r == 0 && i < MODULES; i++) {
		struct spulse_module_fields module = {
			.size = sizeof(module), .pid = 1000, .start = 0x7f0000000000 + (i << 24),
			.end = 0x7f0000000000 + (i << 24) + MODULE_SIZE, .inode = 100 + i,
			.device_major = 8, .device_minor = 1, .path = path};

		module.path_len = snprintf(path, sizeof(path), "/usr/lib/libmade%" PRIu64 ".so", i);
		r = spulse_spool_writer_module(g->writer, &module, &id, err);
	}
	return r;
}

static int put(struct generator *g, uint64_t stack, uint64_t number, struct spulse_error **err)
{
	struct spulse_sample sample = {g->ns, 1000, 1000 + number % g->options.threads};

	g->ns += 90000 + mixed(number) % 20000;
	return spulse_spool_writer_sample(g->writer, &sample,
					  g->frames + stack * g->options.depth * 2,
					  g->depths[stack], err);
}

/* The smaller of two even choices: the first stacks are the hot ones. */
static uint64_t pick(struct generator *g)
{
	uint64_t a = next_random(g) % g->options.stacks, b = next_random(g) % g->options.stacks;

	return a < b ? a : b;
}

static int generate(struct generator *g, struct spulse_error **err)
{
	const struct spulse_output output = {.size = sizeof(output), .write = write_some};
	int fd = open(g->options.path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), r;

	if (fd < 0) {
		perror(g->options.path);
		return -1;
	}
	r = start(g, &output, &fd, err);
	for (uint64_t i = 0; r == 0 && i < g->options.samples; i++)
		r = put(g, pick(g), i, err);
	if (r == 0)
		r = spulse_spool_writer_finish(g->writer, err);
	return close(fd) < 0 ? -1 : r;
}

static double seconds(void)
{
	struct timespec at;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
	return at.tv_sec + at.tv_nsec / 1e9;
}

/* All stacks once, which are new, and then many times in a random order. */
static int measure(struct generator *g, struct spulse_error **err)
{
	const struct spulse_output output = {.size = sizeof(output), .write = write_nothing};
	uint64_t bytes = 0, nodes = 0, stacks = g->options.stacks, frames = 0, again = 0;
	double before, fresh, repeated;
	int r = start(g, &output, &bytes, err);

	for (uint64_t i = 0; i < stacks; i++)
		nodes += g->depths[i];
	before = seconds();
	for (uint64_t i = 0; r == 0 && i < stacks; i++)
		r = put(g, i, i, err);
	fresh = seconds() - before;
	before = seconds();
	for (uint64_t i = 0; r == 0 && i < g->options.samples; i++) {
		again = pick(g);
		frames += g->depths[again];
		r = put(g, again, i, err);
	}
	repeated = seconds() - before;
	printf("new_node_ns=%.2f repeated_stack_ns=%.2f repeated_frame_ns=%.2f nodes=%" PRIu64
	       " bytes=%" PRIu64 "\n",
	       fresh / nodes * 1e9, repeated / g->options.samples * 1e9, repeated / frames * 1e9,
	       nodes, bytes);
	return r;
}

static bool parse(int argc, char **argv, struct options *options)
{
	int option;

	while ((option = getopt(argc, argv, "n:s:d:t:f:w")) != -1) {
		uint64_t *number = option == 'n' ? &options->samples : option == 's' ? &options->stacks
				   : option == 'd' ? &options->depth : option == 't' ? &options->threads
				   : option == 'f' ? &options->format : NULL;

		if (option == 'w')
			options->measure = true;
		else if (number)
			*number = strtoull(optarg, NULL, 10);
		else
			return false;
	}
	options->path = argv[optind];
	return (options->measure || options->path) && options->stacks && options->depth &&
	       options->threads;
}

int main(int argc, char **argv)
{
	SPULSE_CLEANUP(error) err = NULL;
	struct generator g = {
		.options = {.samples = 1200000, .stacks = 4096, .depth = 32, .threads = 8, .format = 4},
	};
	int r;

	if (!parse(argc, argv, &g.options)) {
		fprintf(stderr, "usage: spool_gen [-n SAMPLES] [-s STACKS] [-d DEPTH] [-t THREADS] "
				"[-f 3|4] [-w | OUT]\n");
		return 2;
	}
	if (!make_stacks(&g, g.options.measure))
		return 1;
	r = g.options.measure ? measure(&g, &err) : generate(&g, &err);
	if (err)
		fprintf(stderr, "spool_gen: %s\n", spulse_error_message(err));
	spulse_spool_writer_free(g.writer);
	free(g.frames);
	free(g.depths);
	return r < 0;
}
