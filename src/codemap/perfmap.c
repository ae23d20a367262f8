/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Perf maps: text files in which a runtime names the code that it generates, a line per function,
 * appended while it runs. The text is kept; a refresh compares it with the file and reads only what
 * was appended. A last line without its end may be half written: it counts, but is read again.
 */
#include "codemap.h"

#include <errno.h>
#include <stdio.h>

#include "intervals.h"
#include "perfline.h"
#include "perfopen.h"

enum { CHUNK = 256 << 10 };

struct perfmap {
	struct perfmap_place place;
	char *shown_path;
	pid_t pid;
	struct perfmap_stamp stamp;
	bool loaded; /* false while the file is not usable */
	struct strbuf text;
	size_t complete; /* bytes of whole lines */
	struct intervals entries;
};

struct lines {
	VEC(struct interval) items;
};

static bool add_line(const struct perfmap *map, size_t offset, size_t len, struct lines *lines)
{
	struct perfmap_text name;
	struct interval item;

	if (!perfline_parse(map->text.data + offset, len, &item.start, &item.end, &name))
		return true;
	item.name = name.bytes - map->text.data;
	item.name_len = name.len;
	return vec_push(&lines->items, item);
}

/* Parses the text from an offset on, which begins a line. 1 when entries were added. */
static int parse_from(struct perfmap *map, size_t offset, struct spulse_error **err)
{
	struct lines lines = {0};
	bool ok = true, any;

	map->complete = offset;
	while (ok && offset < map->text.len) {
		const char *line = map->text.data + offset;
		const char *end = memchr(line, '\n', map->text.len - offset);
		size_t len = end ? (size_t)(end - line) : map->text.len - offset;
		size_t shown = end && len && line[len - 1] == '\r' ? len - 1 : len;

		ok = add_line(map, offset, shown, &lines);
		offset += len + 1;
		if (end)
			map->complete = offset;
	}
	any = lines.items.len > 0;
	ok = ok && intervals_take(&map->entries, &lines.items.data, &lines.items.len,
				  &lines.items.cap);
	vec_free(&lines.items);
	return ok ? any : err_no_memory(err);
}

static void forget(struct perfmap *map)
{
	strbuf_reset(&map->text);
	map->complete = 0;
	intervals_release(&map->entries);
}

/* Compares the file with the whole lines we have. 1 equal, 0 not, or -errno. */
static int starts_as_before(const struct perfmap *map, int fd)
{
	_cleanup_free_ char *chunk = malloc(CHUNK);
	size_t at = 0;

	if (!chunk)
		return -ENOMEM;
	while (at < map->complete) {
		size_t want = MIN(map->complete - at, CHUNK);
		ssize_t n = pread_full(fd, chunk, want, at);

		if (n < 0)
			return n;
		if ((size_t)n < want || memcmp(chunk, map->text.data + at, want) != 0)
			return 0;
		at += want;
	}
	return 1;
}

/* Appends the file's bytes from the end of our text on; stops one byte past the limit. */
static int read_rest(struct perfmap *map, int fd)
{
	_cleanup_free_ char *chunk = malloc(CHUNK);
	ssize_t n = 0;

	if (!chunk)
		return -ENOMEM;
	while (map->text.len <= PERFMAP_MAX &&
	       (n = pread_full(fd, chunk, MIN(CHUNK, PERFMAP_MAX + 1 - map->text.len),
			       map->text.len)) > 0) {
		strbuf_add(&map->text, chunk, n);
		if (map->text.failed)
			return -ENOMEM;
	}
	if (n < 0)
		return n;
	return map->text.len > PERFMAP_MAX ? -EFBIG : 0;
}

/* Reads the open file; what is the same as before stays. 1 when lookups may differ now. */
static int take_file(struct perfmap *map, int fd, const char **reason, struct spulse_error **err)
{
	int same = starts_as_before(map, fd), r;
	bool changed = same != 1 && map->entries.items.len > 0;

	if (same != 1)
		forget(map);
	else if (map->text.len > map->complete)
		changed |= intervals_cut(&map->entries, map->complete);
	map->text.len = map->complete;
	r = same < 0 ? same : read_rest(map, fd);
	if (r == -ENOMEM) {
		forget(map);
		return err_no_memory(err);
	}
	if (r < 0) {
		*reason = r == -EFBIG ? "larger than 64 MiB" : "cannot be read";
		forget(map);
		return changed;
	}
	r = parse_from(map, map->complete, err);
	if (r < 0) {
		forget(map);
		return r;
	}
	map->loaded = true;
	return changed || r;
}

static struct perfmap *map_new(void)
{
	return calloc(1, sizeof(struct perfmap));
}

int perfmap_parse(const char *text, size_t len, struct perfmap **map_out,
		  struct spulse_error **err)
{
	struct perfmap *map = map_new();
	int r;

	if (!map)
		return err_no_memory(err);
	if (len > PERFMAP_MAX) {
		perfmap_free(map);
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "a perf map of %zu bytes", len);
	}
	strbuf_add(&map->text, text, len);
	r = map->text.failed ? err_no_memory(err) : parse_from(map, 0, err);
	if (r < 0) {
		perfmap_free(map);
		return r;
	}
	map->loaded = true;
	*map_out = map;
	return 0;
}

/* A map from one place; the place is taken over. *map_out stays NULL without a usable file. */
static int load_place(struct perfmap_place *place, pid_t pid, struct perfmap **map_out,
		      const char **reason, struct spulse_error **err)
{
	struct perfmap_stamp stamp;
	_cleanup_close_ int fd = perfmap_open(place, pid, &stamp, reason);
	struct perfmap *map;
	int r;

	if (fd < 0)
		return 0;
	map = map_new();
	if (!map)
		return err_no_memory(err);
	map->pid = pid;
	map->stamp = stamp;
	map->place = *place;
	place->path = NULL;
	if (asprintf(&map->shown_path, "%s%s", map->place.root, map->place.path) < 0) {
		map->shown_path = NULL;
		r = err_no_memory(err);
	} else {
		r = take_file(map, fd, reason, err);
	}
	if (r < 0 || !map->loaded) {
		perfmap_free(map);
		return MIN(r, 0);
	}
	*map_out = map;
	return 0;
}

int perfmap_load(const char *dir, pid_t pid, struct perfmap **map_out, const char **reason_out,
		 struct spulse_error **err)
{
	struct perfmap_place places[2];
	int count = perfmap_places(dir, pid, places), r = 0;
	const char *reason = NULL;

	if (count == 0)
		return err_no_memory(err);
	*map_out = NULL;
	for (int i = 0; i < count && r == 0 && !*map_out; i++)
		r = load_place(&places[i], pid, map_out, &reason, err);
	for (int i = 0; i < count; i++)
		perfmap_place_release(&places[i]);
	if (reason_out)
		*reason_out = *map_out ? NULL : reason;
	return r;
}

static bool same_stamp(const struct perfmap_stamp *a, const struct perfmap_stamp *b)
{
	return a->device == b->device && a->inode == b->inode && a->size == b->size &&
	       a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}

int perfmap_refresh(struct perfmap *map, bool *changed, struct spulse_error **err)
{
	const char *reason = NULL;
	struct perfmap_stamp stamp;
	_cleanup_close_ int fd = -1;
	int r;

	*changed = false;
	if (!map->place.path)
		return 0;
	fd = perfmap_open(&map->place, map->pid, &stamp, &reason);
	if (fd >= 0 && map->loaded && same_stamp(&stamp, &map->stamp))
		return 0;
	map->loaded = false;
	if (fd < 0) {
		*changed = map->entries.items.len > 0;
		forget(map);
		return 0;
	}
	map->stamp = stamp;
	r = take_file(map, fd, &reason, err);
	*changed = r != 0;
	return MIN(r, 0);
}

bool perfmap_exists(const struct perfmap *map)
{
	return !map->place.path || perfmap_place_exists(&map->place);
}

const char *perfmap_path(const struct perfmap *map)
{
	return map->shown_path ? map->shown_path : "";
}

bool perfmap_find(const struct perfmap *map, uint64_t address, struct perfmap_entry *entry)
{
	const struct interval *found = intervals_find(&map->entries, address);

	if (!found)
		return false;
	*entry = (struct perfmap_entry){
		.start = found->start, .end = found->end,
		.name = {map->text.data + found->name, found->name_len},
	};
	entry->python = perfline_python(&entry->name, &entry->function, &entry->file);
	return true;
}

size_t perfmap_count(const struct perfmap *map)
{
	return map->entries.items.len;
}

void perfmap_free(struct perfmap *map)
{
	if (!map)
		return;
	perfmap_place_release(&map->place);
	free(map->shown_path);
	strbuf_release(&map->text);
	intervals_release(&map->entries);
	free(map);
}
