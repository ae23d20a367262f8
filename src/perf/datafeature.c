/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* What the header of a perf.data file tells of its recording. Broken features are left out. */
#include "datafile.h"

struct feature {
	const uint8_t *at;
	size_t left;
	bool bad;
};

static const void *take(struct feature *f, size_t n)
{
	const uint8_t *at = f->at;

	if (n > f->left) {
		f->bad = true;
		return NULL;
	}
	f->at += n;
	f->left -= n;
	return at;
}

static uint32_t take_u32(struct feature *f)
{
	const void *p = take(f, 4);

	return p ? load_u32(p) : 0;
}

static uint64_t take_u64(struct feature *f)
{
	const void *p = take(f, 8);

	return p ? load_u64(p) : 0;
}

/* A length, then so many bytes with padding behind a NUL. */
static const char *take_string(struct feature *f, size_t *len)
{
	uint32_t size = take_u32(f);
	const char *s = take(f, size);

	*len = s ? strnlen(s, size) : 0;
	if (s && *len > FILE_STRING_MAX)
		f->bad = true;
	return f->bad ? NULL : s;
}

static int set_string(struct perf_file *file, struct feature *f, const char **out,
		      struct spulse_error **err)
{
	size_t len;
	const char *s = take_string(f, &len);

	if (!s)
		return 0;
	*out = arena_strndup(&file->strings, s, len);
	return *out ? 0 : err_no_memory(err);
}

static int set_cmdline(struct perf_file *file, struct feature *f, struct spulse_error **err)
{
	uint32_t count = take_u32(f);
	struct strbuf text = { 0 };

	for (uint32_t i = 0; i < count && !f->bad; i++) {
		size_t len;
		const char *s = take_string(f, &len);

		if (!s)
			break;
		if (i)
			strbuf_putc(&text, ' ');
		strbuf_add(&text, s, len);
	}
	if (!f->bad && !text.failed && text.len)
		file->info.cmdline = arena_strndup(&file->strings, text.data, text.len);
	strbuf_release(&text);
	return text.failed ? err_no_memory(err) : 0;
}

static int set_arch(struct perf_file *file, struct feature *f, struct spulse_error **err)
{
	size_t len;
	const char *s = take_string(f, &len);

	if (!s)
		return 0;
	if (len == 6 && !memcmp(s, "x86_64", 6))
		file->source.arch = PERF_ARCH_X86_64;
	else if ((len == 7 && !memcmp(s, "aarch64", 7)) || (len == 5 && !memcmp(s, "arm64", 5)))
		file->source.arch = PERF_ARCH_AARCH64;
	else
		return err_file(err, SPULSE_ERROR_UNSUPPORTED, 0, file->path,
				"recorded on a machine of type \"%.*s\"", (int)MIN(len, 64), s);
	return 0;
}

static void set_clock(struct perf_file *file, struct feature *f)
{
	uint32_t version = take_u32(f);
	uint64_t wall, clock;

	take_u32(f); /* which clock */
	wall = take_u64(f);
	clock = take_u64(f);
	if (f->bad || version != 1)
		return;
	file->info.has_clock = true;
	file->info.clock_wall_ns = wall;
	file->info.clock_ns = clock;
}

/* ---- build IDs ---- */

int perf_file_add_build_id(struct perf_file *file, const uint8_t *record, size_t size,
			   struct spulse_error **err)
{
	enum { HEAD = 8 + 4 + 24, MISC_HAS_SIZE = 1 << 15 };
	struct perf_file_build_id build_id = { .len = 20 };
	const char *path = (const char *)record + HEAD;
	uint16_t misc;
	size_t len;

	if (size <= HEAD || file->build_ids.len >= FILE_BUILD_IDS_MAX)
		return 0;
	misc = load_u16(record + 4);
	if (misc & MISC_HAS_SIZE)
		build_id.len = record[8 + 4 + 20];
	len = strnlen(path, size - HEAD);
	if (build_id.len == 0 || build_id.len > 20 || len == 0)
		return 0;
	memcpy(build_id.id, record + 12, build_id.len);
	build_id.kernel = (misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
	build_id.path = arena_strndup(&file->strings, path, len);
	if (!build_id.path || !vec_push(&file->build_ids, build_id) ||
	    !u64map_set(&file->build_id_paths, hash_bytes(path, len, hash_salt()),
			file->build_ids.len - 1))
		return err_no_memory(err);
	file->info.build_ids = file->build_ids.data;
	file->info.build_id_count = file->build_ids.len;
	return 0;
}

static int add_build_ids(struct perf_file *file, struct feature *f, struct spulse_error **err)
{
	int r = 0;

	while (f->left >= sizeof(struct perf_event_header) && r == 0) {
		size_t size = load_u16(f->at + 6);
		const uint8_t *record;

		if (size < sizeof(struct perf_event_header) || size > f->left)
			break;
		record = take(f, size);
		r = perf_file_add_build_id(file, record, size, err);
	}
	return r;
}

void perf_file_find_build_id(const struct perf_file *file, struct perf_mmap_data *map)
{
	const uint64_t *index;
	const struct perf_file_build_id *found;

	if (map->build_id_len || !map->exec)
		return;
	index = u64map_get(&file->build_id_paths,
			   hash_bytes(map->path, map->path_len, hash_salt()));
	if (!index)
		return;
	found = &file->build_ids.data[*index];
	if (strcmp(found->path, map->path))
		return;
	map->build_id = found->id;
	map->build_id_len = found->len;
}

int perf_file_add_feature(struct perf_file *file, unsigned int feature, const uint8_t *bytes,
			  size_t len, struct spulse_error **err)
{
	struct feature f = { .at = bytes, .left = len };

	switch (feature) {
	case FILE_FEATURE_BUILD_ID:
		return add_build_ids(file, &f, err);
	case FILE_FEATURE_HOSTNAME:
		return set_string(file, &f, &file->info.hostname, err);
	case FILE_FEATURE_OSRELEASE:
		return set_string(file, &f, &file->info.kernel, err);
	case FILE_FEATURE_ARCH:
		return set_arch(file, &f, err);
	case FILE_FEATURE_NRCPUS:
		take_u32(&f); /* configured */
		file->info.cpus_online = take_u32(&f);
		return 0;
	case FILE_FEATURE_CMDLINE:
		return set_cmdline(file, &f, err);
	case FILE_FEATURE_SAMPLE_TIME:
		file->info.first_ns = take_u64(&f);
		file->info.last_ns = take_u64(&f);
		return 0;
	case FILE_FEATURE_CLOCK_DATA:
		set_clock(file, &f);
		return 0;
	default:
		return 0;
	}
}
