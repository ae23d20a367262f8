/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>

#include "procfs.h"

/* Largest maps file that is read: 65,530 mappings (the kernel's default limit) of 1 KiB each. */
enum { MAPS_MAX_BYTES = 64 << 20 };

static bool parse_number(const char **at, const char *end, unsigned int base, uint64_t *value)
{
	const char *s = *at;
	uint64_t v = 0;

	while (s < end) {
		unsigned int digit;

		if (*s >= '0' && *s <= '9')
			digit = *s - '0';
		else if (base == 16 && (*s | 32) >= 'a' && (*s | 32) <= 'f')
			digit = (*s | 32) - 'a' + 10;
		else
			break;
		if (mul_overflows(v, base, &v) || add_overflows(v, digit, &v))
			return false;
		s++;
	}
	if (s == *at)
		return false;
	*at = s;
	*value = v;
	return true;
}

static bool skip_char(const char **at, const char *end, char c)
{
	if (*at == end || **at != c)
		return false;
	(*at)++;
	return true;
}

/* start-end perms offset major:minor inode [path], the path kept byte for byte. */
static bool parse_line(const char *at, const char *end, struct proc_map *map)
{
	uint64_t major, minor;

	if (!parse_number(&at, end, 16, &map->start) || !skip_char(&at, end, '-') ||
	    !parse_number(&at, end, 16, &map->end) || !skip_char(&at, end, ' ') ||
	    end - at < 4)
		return false;
	map->exec = at[2] == 'x';
	at += 4;
	if (!skip_char(&at, end, ' ') || !parse_number(&at, end, 16, &map->offset) ||
	    !skip_char(&at, end, ' ') || !parse_number(&at, end, 16, &major) ||
	    !skip_char(&at, end, ':') || !parse_number(&at, end, 16, &minor) ||
	    !skip_char(&at, end, ' ') || !parse_number(&at, end, 10, &map->inode))
		return false;
	if (map->start >= map->end || major > UINT32_MAX || minor > UINT32_MAX)
		return false;
	if (at < end && *at != ' ' && *at != '\t')
		return false;
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	map->dev_major = major;
	map->dev_minor = minor;
	map->path = at;
	map->path_len = end - at;
	return true;
}

/* Cuts the text in lines, each NUL-terminated where its line end was. */
static bool parse_text(struct proc_maps *maps)
{
	char *at = maps->text.data, *end = at + maps->text.len;

	while (at < end) {
		char *line_end = memchr(at, '\n', end - at);
		struct proc_map map;

		if (!line_end)
			line_end = end;
		*line_end = '\0';
		if (parse_line(at, line_end, &map) && !vec_push(&maps->maps, map))
			return false;
		at = line_end + 1;
	}
	return true;
}

bool proc_maps_parse(struct proc_maps *maps, const char *text, size_t len)
{
	maps->maps.len = 0;
	strbuf_reset(&maps->text);
	strbuf_add(&maps->text, text, len);
	return !maps->text.failed && parse_text(maps);
}

/*
 * The file of a leader that exited while other threads run is empty: the mappings are the same
 * for every thread, so another thread's file is read then.
 */
static int read_of_other_thread(struct proc_maps *maps, pid_t pid)
{
	struct proc_tids tids = { 0 };
	int r = proc_threads(pid, &tids);

	for (size_t i = 0; r == 0 && i < tids.tids.len && maps->text.len == 0; i++) {
		int read = tids.tids.data[i] == pid ? 0 :
			proc_file_read(pid, tids.tids.data[i], "maps", MAPS_MAX_BYTES, &maps->text);

		if (read < 0 && read != -ENOENT && read != -ESRCH)
			r = read;
	}
	vec_free(&tids.tids);
	return r;
}

int proc_maps_read(struct proc_maps *maps, pid_t pid, struct spulse_error **err)
{
	char path[PROC_PATH_MAX];
	int r = proc_file_read(pid, 0, "maps", MAPS_MAX_BYTES, &maps->text);

	maps->maps.len = 0;
	if (r == 0 && maps->text.len == 0)
		r = read_of_other_thread(maps, pid);
	if (r < 0) {
		proc_path(path, pid, 0, "maps");
		return proc_read_error(err, -r, pid, path);
	}
	return parse_text(maps) ? 0 : err_no_memory(err);
}

void proc_maps_release(struct proc_maps *maps)
{
	vec_free(&maps->maps);
	strbuf_release(&maps->text);
}
