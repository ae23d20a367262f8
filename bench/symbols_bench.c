/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Parts of the symbolizer that no peer shows from outside.
 * usage: symbols-bench cached SPOOL         nanoseconds and allocations of a known stack
 *        symbols-bench grow FOLDER COUNT    CPU of an update whose perf map grew by 1000 entries
 *        symbols-bench reading ELF          CPU of reading whole tables, and of mapping them
 */
#include <stackpulse/stackpulse.h>

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 2000000, UPDATES = 20, STEP = 1000, PID = 1000 };

static uint64_t allocations;

/* Counts what the whole process allocates. */
extern void *__libc_malloc(size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_calloc(size_t count, size_t size);

void *malloc(size_t size)
{
	allocations++;
	return __libc_malloc(size);
}

void *realloc(void *old, size_t size)
{
	allocations++;
	return __libc_realloc(old, size);
}

void *calloc(size_t count, size_t size)
{
	allocations++;
	return __libc_calloc(count, size);
}

static double cpu_seconds(void)
{
	struct timespec at;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
	return at.tv_sec + at.tv_nsec / 1e9;
}

/* The same stack again and again, its frames looked at or not. */
static int measure_stack(struct spulse_symbolizer *symbolizer, const struct spulse_stack *stack,
			 struct spulse_error **err)
{
	const struct spulse_resolved *resolved = NULL;
	double start, plain, frames;
	uint64_t before, sum = 0;
	size_t count;
	int r = spulse_symbolizer_resolve(symbolizer, stack, &resolved, err);

	if (r < 0)
		return r;
	count = spulse_resolved_count(resolved);
	before = allocations;
	start = cpu_seconds();
	for (int i = 0; i < ROUNDS && !r; i++)
		r = spulse_symbolizer_resolve(symbolizer, stack, &resolved, err);
	plain = cpu_seconds() - start;
	start = cpu_seconds();
	for (int i = 0; i < ROUNDS / 10 && !r; i++) {
		r = spulse_symbolizer_resolve(symbolizer, stack, &resolved, err);
		for (size_t k = 0; k < count; k++)
			sum += spulse_resolved_id(resolved, k).serial;
	}
	frames = (cpu_seconds() - start) * 10 - plain;
	printf("frames=%zu resolve_ns=%.2f frame_ns=%.2f allocations=%" PRIu64 " sum=%" PRIu64
	       "\n",
	       count, plain / ROUNDS * 1e9, frames / ROUNDS / count * 1e9, allocations - before,
	       sum);
	return r;
}

static int cached(const char *path, struct spulse_error **err)
{
	SPULSE_CLEANUP(replay) replay = NULL;
	SPULSE_CLEANUP(symbolizer) symbolizer = NULL;
	SPULSE_CLEANUP(stacks) stacks = NULL;
	const struct spulse_stack *stack;
	int r = spulse_replay_open(path, &replay, err);

	if (!r)
		r = spulse_symbolizer_new(spulse_replay_source(replay), NULL, &symbolizer, err);
	if (!r)
		r = spulse_replay_stacks(replay, &stacks, err);
	if (!r && spulse_stacks_next(stacks, &stack, err) > 0)
		r = measure_stack(symbolizer, stack, err);
	return r;
}

/* ---- a perf map that grows ---- */

struct live {
	int fd;
	FILE *map;
	struct spulse_spool_writer *writer;
	struct spulse_tail *tail;
	struct spulse_symbolizer *symbolizer;
	uint64_t entries, ns;
};

static ssize_t write_some(void *data, const void *bytes, size_t len)
{
	ssize_t n = write(*(int *)data, bytes, len);

	return n < 0 ? -errno : n;
}

static void add_entries(struct live *live, uint64_t count)
{
	for (uint64_t end = live->entries + count; live->entries < end; live->entries++)
		fprintf(live->map, "%" PRIx64 " 40 function_number_%" PRIu64 "\n",
			0x10000000 + live->entries * 64, live->entries);
	fflush(live->map);
}

/* A sample in the newest entry and one in an older. */
static int add_samples(struct live *live, struct spulse_error **err)
{
	struct spulse_frame frames[2];
	struct spulse_sample sample = {live->ns += 1000000, PID, PID};
	int r;

	for (int i = 0; i < 2; i++) {
		uint64_t entry = i ? live->ns / 1000000 * 7919 % live->entries : live->entries - 1;
		uint64_t ip = 0x10000000 + entry * 64 + 8;

		frames[i] = (struct spulse_frame){.abs_ip = ip, .file_relative_ip = ip,
						  .module_id = SPULSE_NO_MODULE,
						  .mode = SPULSE_FRAME_USER};
	}
	r = spulse_spool_writer_sample(live->writer, &sample, frames, 2, err);
	return r ? r : spulse_spool_writer_flush(live->writer, err);
}

/* One update: what a live view does with a batch. */
static int update(struct live *live, double *seconds, struct spulse_error **err)
{
	const struct spulse_invalidation *invalidation;
	const struct spulse_resolved *resolved;
	SPULSE_CLEANUP(stacks) stacks = NULL;
	const struct spulse_batch *batch;
	const struct spulse_stack *stack;
	double start;
	int r = add_samples(live, err);

	start = cpu_seconds();
	if (!r)
		r = spulse_tail_poll(live->tail, &batch, err);
	if (r < 0)
		return r;
	r = spulse_symbolizer_update(live->symbolizer, batch, &invalidation, err);
	if (!r)
		r = spulse_batch_stacks(batch, &stacks, err);
	while (!r && (r = spulse_stacks_next(stacks, &stack, err)) > 0)
		r = spulse_symbolizer_resolve(live->symbolizer, stack, &resolved, err);
	*seconds = cpu_seconds() - start;
	return r < 0 ? r : 0;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static int run_live(struct live *live, struct spulse_error **err)
{
	double times[UPDATES], first = 0;
	int r = update(live, &first, err);

	for (int i = 0; i < UPDATES && !r; i++) {
		add_entries(live, STEP);
		r = update(live, &times[i], err);
	}
	if (r)
		return r;
	qsort(times, UPDATES, sizeof(*times), by_value);
	printf("entries=%" PRIu64 " first_ms=%.3f update_ms=%.3f\n", live->entries, first * 1e3,
	       times[UPDATES / 2] * 1e3);
	return 0;
}

static int grow(const char *folder, uint64_t count, struct spulse_error **err)
{
	const struct spulse_output output = {.size = sizeof(output), .write = write_some};
	const struct spulse_spool_header header = {.size = sizeof(header), .format = 4};
	const struct spulse_symbolizer_options options = {.size = sizeof(options),
							  .perf_map_dir = folder};
	struct live live = {0};
	char map[4096], spool[4096];
	int r;

	snprintf(map, sizeof(map), "%s/perf-%d.map", folder, PID);
	snprintf(spool, sizeof(spool), "%s/live.spool", folder);
	live.fd = open(spool, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	live.map = fopen(map, "we");
	if (live.fd < 0 || !live.map) {
		perror(folder);
		return -1;
	}
	add_entries(&live, count);
	r = spulse_spool_writer_new(&output, &live.fd, &header, &live.writer, err);
	if (!r)
		r = spulse_spool_writer_flush(live.writer, err);
	if (!r)
		r = spulse_tail_open(spool, &live.tail, err);
	if (!r)
		r = spulse_symbolizer_new(spulse_tail_source(live.tail), &options, &live.symbolizer,
					  err);
	if (!r)
		r = run_live(&live, err);
	spulse_symbolizer_free(live.symbolizer);
	spulse_tail_free(live.tail);
	spulse_spool_writer_free(live.writer);
	fclose(live.map);
	close(live.fd);
	return r;
}

/* ---- reading instead of mapping ---- */

enum { READINGS = 50, SECTIONS_MAX = 128 };

/* What one lookup needs as a whole; a mapping would fault in the pages that it looks at. */
static bool is_read_whole(const char *name)
{
	static const char *const names[] = {
		".symtab", ".strtab", ".dynsym", ".dynstr", ".debug_abbrev", ".debug_line_str",
		".debug_aranges", ".eh_frame_hdr"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* Into fresh memory, as a file is read that may change meanwhile. */
static bool read_range(int fd, const Elf64_Shdr *section)
{
	void *to = mmap(NULL, section->sh_size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool done = to != MAP_FAILED &&
		    pread(fd, to, section->sh_size, (off_t)section->sh_offset) ==
			    (ssize_t)section->sh_size;

	if (to != MAP_FAILED)
		munmap(to, section->sh_size);
	return done;
}

static bool map_range(int fd, const Elf64_Shdr *section)
{
	uint64_t start = section->sh_offset & -(uint64_t)4096;
	size_t len = section->sh_offset + section->sh_size - start;
	volatile const char *bytes = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, (off_t)start);

	if (bytes == MAP_FAILED)
		return false;
	for (size_t i = 0; i < len; i += 4096)
		(void)bytes[i];
	return !munmap((void *)bytes, len);
}

static int reading(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool (*const ways[])(int, const Elf64_Shdr *) = {read_range, map_range};
	Elf64_Shdr sections[SECTIONS_MAX];
	double seconds[2] = {0}, start;
	char names[8192] = {0};
	bool done;
	Elf64_Ehdr eh;

	done = fd >= 0 && pread(fd, &eh, sizeof(eh), 0) == sizeof(eh) &&
	       eh.e_shnum <= SECTIONS_MAX && eh.e_shstrndx < eh.e_shnum &&
	       pread(fd, sections, eh.e_shnum * sizeof(*sections), (off_t)eh.e_shoff) ==
		       (ssize_t)(eh.e_shnum * sizeof(*sections)) &&
	       pread(fd, names, sizeof(names) - 1, (off_t)sections[eh.e_shstrndx].sh_offset) > 0;
	for (int i = 0; done && i < 2 * READINGS; i++) {
		start = cpu_seconds();
		for (int s = 0; done && s < eh.e_shnum; s++)
			if (sections[s].sh_name < sizeof(names) && sections[s].sh_size &&
			    is_read_whole(names + sections[s].sh_name))
				done = ways[i % 2](fd, &sections[s]);
		seconds[i % 2] += cpu_seconds() - start;
	}
	if (!done)
		perror(path);
	else
		printf("read_ms=%.3f map_ms=%.3f\n", seconds[0] / READINGS * 1e3,
		       seconds[1] / READINGS * 1e3);
	if (fd >= 0)
		close(fd);
	return done ? 0 : -1;
}

int main(int argc, char **argv)
{
	SPULSE_CLEANUP(error) err = NULL;
	int r;

	if (argc == 3 && !strcmp(argv[1], "cached")) {
		r = cached(argv[2], &err);
	} else if (argc == 4 && !strcmp(argv[1], "grow")) {
		r = grow(argv[2], strtoull(argv[3], NULL, 10), &err);
	} else if (argc == 3 && !strcmp(argv[1], "reading")) {
		r = reading(argv[2]);
	} else {
		fprintf(stderr, "usage: symbols-bench cached SPOOL | grow FOLDER COUNT | reading ELF\n");
		return 2;
	}
	if (err)
		fprintf(stderr, "symbols-bench: %s\n", spulse_error_message(err));
	return r < 0;
}
