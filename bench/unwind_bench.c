/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Walks the samples of a capture (see unwind_capture.c) and tells what a frame costs.
 * usage: unwind-bench CAPTURE [FRAMES_OUT]
 *
 * Lines "NAME VALUE": in-cache (the first samples, again and again), streamed (all, once a round),
 * miss (distinct addresses with empty caches). FRAMES_OUT gets one line per sample: the stored
 * addresses and the end.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "image/image.h"
#include "unwind/unwind.h"

enum { REGISTERS = 17, CACHED_SAMPLES = 40, CACHED_BYTES = 1 << 20 };

struct sample {
	struct unw_regs regs;
	const uint8_t *stack;
	uint32_t len;
};

struct capture {
	uint8_t *bytes;
	size_t len;
	struct sample *samples;
	size_t count;
	struct unw_space *space;
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void add_map(struct capture *c, const uint8_t *p, uint32_t len)
{
	char path[4096];
	struct image_request request = {.pid = getpid(), .path = path};
	struct unw_map map = {0};
	struct image *image = NULL;

	memcpy(&request.start, p, 8);
	memcpy(&request.end, p + 8, 8);
	memcpy(&request.file_offset, p + 16, 8);
	snprintf(path, sizeof(path), "%.*s", (int)(len - 24), (const char *)p + 24);
	map.start = request.start;
	map.end = request.end;
	if (strcmp(path, "[vdso]") == 0)
		image_open(NULL, &request, &image, NULL);
	else if (path[0] == '/')
		image_open_path(path, &image, NULL);
	if (image && image_bias(image, map.start, map.end, request.file_offset, &map.bias))
		unw_image_new(image, &map.image, NULL);
	unw_space_map(c->space, &map, NULL);
	unw_image_unref(map.image);
	image_unref(image);
}

static void add_sample(struct capture *c, const uint8_t *p, uint32_t len)
{
	struct sample *s = &c->samples[c->count++];

	memcpy(s->regs.value, p, REGISTERS * 8);
	s->regs.known = (1 << REGISTERS) - 1;
	s->stack = p + REGISTERS * 8;
	s->len = len - REGISTERS * 8;
}

static bool load(struct capture *c, const char *path)
{
	FILE *f = fopen(path, "rb");
	long size;

	if (!f || fseek(f, 0, SEEK_END) || (size = ftell(f)) < 8)
		return false;
	rewind(f);
	c->len = (size_t)size;
	c->bytes = malloc(c->len);
	c->samples = calloc(c->len / (8 + REGISTERS * 8) + 1, sizeof(*c->samples));
	if (!c->bytes || !c->samples || fread(c->bytes, 1, c->len, f) != c->len ||
	    memcmp(c->bytes, "UNWCAP01", 8) != 0 || unw_space_new(&c->space, NULL) < 0)
		return false;
	fclose(f);
	for (size_t at = 8; at + 8 <= c->len;) {
		uint32_t head[2];

		memcpy(head, c->bytes + at, 8);
		at += 8;
		if (head[1] > c->len - at)
			return false;
		if (head[0] == 1)
			add_map(c, c->bytes + at, head[1]);
		else
			add_sample(c, c->bytes + at, head[1]);
		at += head[1];
	}
	return c->count > 0;
}

static uint64_t walk_range(struct capture *c, struct unwinder *u, size_t count, FILE *out)
{
	struct unw_result r;
	uint64_t frames = 0;

	for (size_t i = 0; i < count; i++) {
		const struct sample *s = &c->samples[i];

		unw_walk(u, c->space, &s->regs, s->stack, s->len, &r);
		frames += r.count;
		if (!out)
			continue;
		for (uint32_t j = 0; j < r.count; j++)
			fprintf(out, "%" PRIx64 " ", r.addresses[j]);
		fprintf(out, "%s\n", r.end == UNW_COMPLETE ? "complete" : "truncated");
	}
	return frames;
}

/* How many samples fit into the processor's cache together. */
static size_t cached_count(const struct capture *c)
{
	size_t bytes = 0, n = 0;

	while (n < c->count && n < CACHED_SAMPLES && bytes < CACHED_BYTES)
		bytes += c->samples[n++].len;
	return n;
}

/* Nanoseconds per frame of the best round; a round is long enough for the clock not to matter. */
static double best_of(struct capture *c, struct unwinder *u, size_t count, unsigned int rounds,
		      unsigned int passes)
{
	double best = 1e18;

	for (unsigned int i = 0; i < rounds; i++) {
		double start = now(), cost;
		uint64_t frames = 0;

		for (unsigned int j = 0; j < passes; j++)
			frames += walk_range(c, u, count, NULL);
		cost = (now() - start) / (double)frames;
		if (cost < best)
			best = cost;
	}
	return best;
}

static uint32_t count_distinct(void *data, struct unw_space *space, const struct unw_map *map,
			       uint64_t address)
{
	(void)space, (void)map, (void)address;
	return (uint32_t)(*(uint64_t *)data)++;
}

int main(int argc, char **argv)
{
	struct capture c = {0};
	uint64_t distinct = 0, frames;
	const struct unw_callbacks callbacks = {.intern = count_distinct, .data = &distinct};
	struct unwinder *u = NULL;
	FILE *out = argc > 2 ? fopen(argv[2], "w") : NULL;
	double start, cold, warm;

	if (argc < 2 || !load(&c, argv[1]) || unwinder_new(UNW_X86_64, &callbacks, &u, NULL) < 0)
		return 1;
	start = now();
	frames = walk_range(&c, u, c.count, NULL);
	cold = now() - start;
	warm = best_of(&c, u, c.count, 5, 1);
	printf("samples %zu\ndepth %.1f\n", c.count, (double)frames / (double)c.count);
	printf("distinct %" PRIu64 "\n", distinct);
	printf("streamed-ns %.2f\n", warm);
	printf("in-cache-ns %.2f\n", best_of(&c, u, cached_count(&c), 50, 20));
	printf("first-pass-ns %.2f\n", cold / (double)frames);
	printf("miss-ns %.0f\n", (cold - warm * (double)frames) / (double)distinct);
	if (out) {
		walk_range(&c, u, c.count, out);
		fclose(out);
	}
	unwinder_free(u);
	unw_space_free(c.space);
	free(c.samples);
	free(c.bytes);
	return 0;
}
