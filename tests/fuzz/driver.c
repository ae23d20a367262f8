/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "driver.h"

#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "random.h"

enum { RUNS_PER_SEED = 40000, MAX_CHANGES = 6, ROOM = 64, MAX_SECONDS = 5 };

static unsigned long runs;

static void run(const uint8_t *data, size_t size)
{
	/* A copy of just that size, so that a read behind it is seen. */
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	memcpy(copy, data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
	runs++;
}

/* Values that often sit at a limit. */
static uint64_t odd_number(struct random *rng)
{
	static const uint64_t numbers[] = {0, 1, 2, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff,
					   0x7fffffff, 0x80000000, 0xffffffff, INT64_MAX,
					   (uint64_t)INT64_MAX + 1, UINT64_MAX, UINT64_MAX - 7};

	return numbers[random_below(rng, sizeof(numbers) / sizeof(numbers[0]))];
}

/* One change in place; may shorten or lengthen. bytes has ROOM behind len. */
static size_t change(struct random *rng, uint8_t *bytes, size_t len, size_t max)
{
	static const unsigned int widths[] = {1, 2, 4, 8};
	size_t at = random_below(rng, len), from = random_below(rng, len), n;
	uint64_t number = odd_number(rng);

	switch (random_below(rng, 7)) {
	case 0:
		bytes[at] ^= 1 << random_below(rng, 8);
		return len;
	case 1:
		bytes[at] = random_u64(rng);
		return len;
	case 2:
	case 3:
		n = widths[random_below(rng, 4)];
		memcpy(bytes + at, &number, n < len - at ? n : len - at);
		return len;
	case 4:
		return at ? at : 1;
	case 5:
		n = random_below(rng, len - (at > from ? at : from));
		memmove(bytes + at, bytes + from, n);
		return len;
	default:
		if (len == max)
			return len;
		memmove(bytes + at + 1, bytes + at, len - at);
		return len + 1;
	}
}

static void run_changed(struct random *rng, const uint8_t *seed, size_t len)
{
	size_t max = len + ROOM, now = len;
	uint8_t *bytes = malloc(max);

	if (!bytes)
		abort();
	memcpy(bytes, seed, len);
	for (uint64_t i = 1 + random_below(rng, MAX_CHANGES); i > 0; i--)
		now = change(rng, bytes, now, max);
	run(bytes, now);
	free(bytes);
}

static int run_file(const char *path, const struct stat *st, int type)
{
	uint8_t *bytes;
	FILE *f;

	if (type != FTW_F || !(f = fopen(path, "re")))
		return 0;
	bytes = malloc(st->st_size + 1);
	if (bytes)
		run(bytes, fread(bytes, 1, st->st_size, f));
	free(bytes);
	fclose(f);
	return 0;
}

static void run_seeds(struct random *rng, time_t seconds)
{
	time_t end = time(NULL) + (seconds ? seconds : MAX_SECONDS);
	uint8_t *seed;
	size_t len;

	do {
		for (unsigned int i = 0; (seed = fuzz_seed(i, &len)) != NULL; i++) {
			run(seed, len);
			for (int n = 0; len && n < RUNS_PER_SEED && time(NULL) < end; n++)
				run_changed(rng, seed, len);
			free(seed);
		}
	} while (seconds && time(NULL) < end);
}

static int write_seeds(const char *folder)
{
	char path[4096];
	uint8_t *seed;
	size_t len;
	FILE *f;

	for (unsigned int i = 0; (seed = fuzz_seed(i, &len)) != NULL; i++) {
		snprintf(path, sizeof(path), "%s/seed-%u", folder, i);
		f = fopen(path, "we");
		if (!f || fwrite(seed, 1, len, f) != len || fclose(f))
			return 1;
		free(seed);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct random rng = {.state = 1};
	time_t seconds = 0;
	bool files_only = false;
	int option;

	while ((option = getopt(argc, argv, "s:r:fw:")) != -1) {
		if (option == 's')
			seconds = atol(optarg);
		else if (option == 'r')
			rng.state = strtoull(optarg, NULL, 0);
		else if (option == 'f')
			files_only = true;
		else if (option == 'w')
			return write_seeds(optarg);
		else
			return 2;
	}
	for (int i = optind; i < argc; i++)
		ftw(argv[i], run_file, 8);
	if (!files_only)
		run_seeds(&rng, seconds);
	printf("%lu inputs\n", runs);
	return 0;
}
