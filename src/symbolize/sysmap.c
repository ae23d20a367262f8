/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * System.map: the kernel's symbols as it was linked. Where the kernel was moved (KASLR) the
 * addresses need a slide, and the right one is the one that explains most of what was recorded:
 * tried are none, those that put _text where a recording saw it, and, as a guess that needs much
 * more evidence, the one that puts it just below the lowest recorded address.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernel.h"

enum {
	SYMBOL_DISTANCE_MAX = 1 << 20,
	TEXT_ALIGNMENT = 2 << 20,
	GUESS_MINIMUM = 8,
	SLIDES_MAX = 64,
};

struct candidate {
	uint64_t slide;
	bool guessed;
};

struct match {
	const struct kernel_table *map;
	struct candidate candidate;
	size_t matched;
	uint64_t distance;
};

/* Addresses of _text and _stext in a map. */
static size_t text_addresses(const struct kernel_table *map, uint64_t *out, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < map->count && n < max; i++) {
		const char *name = map->text.data + map->symbols[i].name;

		if (!map->symbols[i].module && (!strcmp(name, "_text") || !strcmp(name, "_stext")))
			out[n++] = map->symbols[i].address;
	}
	/* Both often lie at one address, of which the table keeps a single symbol. */
	if (!n && map->count)
		out[n++] = map->symbols[0].address;
	return n;
}

static size_t list_candidates(const struct kernel_table *map, const uint64_t *addresses,
			      size_t count, const uint64_t *anchors, size_t anchor_count,
			      struct candidate *out)
{
	uint64_t texts[4];
	size_t text_count = text_addresses(map, texts, ARRAY_LEN(texts));
	size_t n = 0;

	out[n++] = (struct candidate){ 0 };
	for (size_t i = 0; i < anchor_count; i++)
		for (size_t k = 0; k < text_count && n < SLIDES_MAX - ARRAY_LEN(texts); k++)
			out[n++] = (struct candidate){ .slide = anchors[i] - texts[k] };
	for (size_t k = 0; k < text_count && count; k++)
		out[n++] = (struct candidate){
			.slide = (addresses[0] & -(uint64_t)TEXT_ALIGNMENT) - texts[k],
			.guessed = true,
		};
	return n;
}

static bool find_near(const struct kernel_table *map, uint64_t slide, uint64_t address,
		      struct kernel_hit *hit)
{
	return kernel_table_find(map, address - slide, hit) && hit->offset <= SYMBOL_DISTANCE_MAX;
}

static bool is_better(const struct match *a, const struct match *b)
{
	if (a->matched != b->matched)
		return a->matched > b->matched;
	return a->distance < b->distance;
}

static void try_candidate(struct match *best, const struct kernel_table *map,
			  struct candidate candidate, const uint64_t *addresses, size_t count)
{
	struct match match = { .map = map, .candidate = candidate };
	struct kernel_hit hit;

	for (size_t i = 0; i < count; i++) {
		if (!find_near(map, candidate.slide, addresses[i], &hit))
			continue;
		match.matched++;
		match.distance += hit.offset;
	}
	if (candidate.guessed && match.matched < GUESS_MINIMUM)
		return;
	if (match.matched && (!best->map || is_better(&match, best)))
		*best = match;
}

/* The answers as a sparse table of the asked addresses. */
static struct kernel_table *match_table(const struct match *match, const uint64_t *addresses,
					size_t count)
{
	struct kernel_table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	table->refs = 1;
	table->asked = calloc(count + 1, sizeof(*table->asked));
	table->symbols = calloc(count + 1, sizeof(*table->symbols));
	strbuf_putc(&table->text, 0);
	for (size_t i = 0; i < count && table->asked && table->symbols; i++) {
		struct kernel_hit hit;

		table->asked[table->asked_count++] = addresses[i];
		if (!find_near(match->map, match->candidate.slide, addresses[i], &hit))
			continue;
		table->symbols[i].address = addresses[i] - hit.offset;
		table->symbols[i].name = table->text.len;
		strbuf_add(&table->text, hit.name, strlen(hit.name) + 1);
		table->count++;
	}
	if (!table->asked || !table->symbols || table->text.failed) {
		kernel_table_unref(table);
		return NULL;
	}
	return table;
}

struct kernel_table *sysmap_match(struct kernel_table *const *maps, size_t map_count,
				  const uint64_t *addresses, size_t count,
				  const uint64_t *anchors, size_t anchor_count)
{
	struct match best = { 0 };

	for (size_t m = 0; m < map_count; m++) {
		struct candidate candidates[SLIDES_MAX];
		size_t n = list_candidates(maps[m], addresses, count, anchors, anchor_count,
					   candidates);

		for (size_t i = 0; i < n; i++) {
			try_candidate(&best, maps[m], candidates[i], addresses, count);
			if (best.matched == count && !best.distance)
				break;
		}
	}
	return best.map ? match_table(&best, addresses, count) : NULL;
}

/* ---- the files ---- */

enum { MAP_FILES = 6 };

static struct {
	pthread_once_t once;
	struct kernel_table *maps[MAP_FILES];
	size_t count;
} files = { .once = PTHREAD_ONCE_INIT };

/* Path of candidate number `index`, canonical; false when there is none. */
static bool map_path(size_t index, const char *release, char path[PATH_MAX])
{
	static const char *const places[MAP_FILES][2] = {
		{ "/boot/System.map-", "" },
		{ "/usr/lib/debug/boot/System.map-", "" },
		{ "/lib/modules/", "/build/System.map" },
		{ "/usr/lib/modules/", "/build/System.map" },
		{ "/lib/modules/", "/System.map" },
		{ "/usr/lib/modules/", "/System.map" },
	};
	struct strbuf sb = { 0 };
	bool found;

	strbuf_printf(&sb, "%s%s%s", places[index][0], release, places[index][1]);
	found = sb.data && realpath(sb.data, path);
	strbuf_release(&sb);
	return found;
}

static struct kernel_table *read_map(const char *path)
{
	struct spulse_error *error = NULL;
	struct kernel_table *table = NULL;

	if (kernel_table_load(path, &table, &error) < 0) {
		log_debug("System.map: %s", spulse_error_message(error));
		spulse_error_free(error);
		return NULL;
	}
	if (!table->count) {
		kernel_table_unref(table);
		return NULL;
	}
	return table;
}

static void read_maps(void)
{
	char paths[MAP_FILES][PATH_MAX];
	struct strbuf release = { 0 };
	size_t n = 0;

	if (read_file("/proc/sys/kernel/osrelease", 256, &release) < 0 || !release.data) {
		strbuf_release(&release);
		return;
	}
	release.data[strcspn(release.data, "\n")] = 0;
	for (size_t i = 0; i < MAP_FILES; i++) {
		bool known = !map_path(i, release.data, paths[n]);

		for (size_t k = 0; k < n && !known; k++)
			known = !strcmp(paths[k], paths[n]);
		if (known)
			continue;
		files.maps[files.count] = read_map(paths[n++]);
		files.count += files.maps[files.count] != NULL;
	}
	strbuf_release(&release);
}

struct kernel_table *sysmap_lookup(const uint64_t *addresses, size_t count,
				   const uint64_t *anchors, size_t anchor_count)
{
	pthread_once(&files.once, read_maps);
	return sysmap_match(files.maps, files.count, addresses, count, anchors, anchor_count);
}
