/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* The header of a perf.data file: where its parts are, and which events it has. */
#include <errno.h>
#include <sys/stat.h>

#include "datafile.h"

static const char magic[8] = "PERFILE2";
static const char magic_swapped[8] = "2ELIFREP";

struct file_section {
	uint64_t offset, size;
};

struct file_header {
	char magic[8];
	uint64_t size;
	uint64_t attr_size;
	struct file_section attrs, data, event_types;
	uint64_t features[4];
};

static bool inside(const struct file_section *section, uint64_t file_size)
{
	return section->size <= file_size && section->offset <= file_size - section->size;
}

/* ---- events ---- */

static bool has_samples(const struct perf_event_attr *attr)
{
	return attr->type != PERF_TYPE_SOFTWARE || attr->config != PERF_COUNT_SW_DUMMY;
}

static int add_ids(struct perf_file *file, const uint8_t *ids, size_t ids_size,
		   struct spulse_error **err)
{
	for (size_t i = 0; i + 8 <= ids_size; i += 8) {
		if (file->ids.count >= FILE_IDS_MAX)
			return perf_file_bad(file, file->bytes.offset, err,
					     "more than %d event ids", FILE_IDS_MAX);
		if (!u64map_set(&file->ids, load_u64(ids + i), file->attrs.len - 1))
			return err_no_memory(err);
	}
	return 0;
}

static int check_attr(const struct perf_file *file, const struct perf_event_attr *attr,
		      uint64_t offset, struct spulse_error **err)
{
	if (file->attrs.len >= FILE_ATTRS_MAX)
		return perf_file_bad(file, offset, err, "more than %d events", FILE_ATTRS_MAX);
	if (__builtin_popcountll(attr->sample_regs_user) > PERF_REGS_MAX)
		return perf_file_bad(file, offset, err, "more than %d registers in a sample",
				     PERF_REGS_MAX);
	return 0;
}

int perf_file_add_attr(struct perf_file *file, const uint8_t *bytes, size_t size,
		       const uint8_t *ids, size_t ids_size, uint64_t offset,
		       struct spulse_error **err)
{
	struct perf_event_attr attr = { 0 };
	struct file_attr *added;
	int r;

	memcpy(&attr, bytes, MIN(size, sizeof(attr)));
	r = check_attr(file, &attr, offset, err);
	if (r < 0)
		return r;
	if (!vec_push(&file->attrs, (struct file_attr){ 0 }))
		return err_no_memory(err);
	added = &vec_last(&file->attrs);
	added->layout = (struct perf_layout){
		.sample_type = attr.sample_type,
		.read_format = attr.read_format,
		.branch_sample_type = attr.branch_sample_type,
		.regs_user_mask = attr.sample_regs_user,
		.regs_intr_mask = attr.sample_regs_intr,
		.sample_id_all = attr.sample_id_all,
		.event_id = PERF_EVENT_OTHER,
	};
	added->frequency = attr.freq ? attr.sample_freq : 0;
	added->has_stack = attr.sample_type & PERF_SAMPLE_STACK_USER;
	if (!file->has_primary && has_samples(&attr)) {
		file->has_primary = true;
		file->primary = file->attrs.len - 1;
		added->layout.event_id = PERF_EVENT_SAMPLING;
		file->info.frequency = added->frequency;
		file->info.callchain_only = !added->has_stack;
		file->info.chain_limit = attr.sample_max_stack ? attr.sample_max_stack :
								 PERF_MAX_STACK_DEPTH;
	}
	return add_ids(file, ids, ids_size, err);
}

/* Reads a part of a seekable file into memory that it fits. */
static int read_section(struct perf_file *file, const struct file_section *section,
			uint8_t **bytes_out, struct spulse_error **err)
{
	uint8_t *bytes = malloc(section->size + 1);
	ssize_t n;

	if (!bytes)
		return err_no_memory(err);
	n = pread_full(file->bytes.fd, bytes, section->size, section->offset);
	if (n < 0 || (uint64_t)n != section->size) {
		free(bytes);
		return n < 0 ? err_io(err, -n, file->path, "cannot read") :
			       perf_file_bad(file, section->offset, err, "the file ends too early");
	}
	*bytes_out = bytes;
	return 0;
}

static int read_attr(struct perf_file *file, const uint8_t *entry, const struct file_header *header,
		     uint64_t offset, uint64_t file_size, struct spulse_error **err)
{
	size_t attr_size = header->attr_size - sizeof(struct file_section);
	_cleanup_free_ uint8_t *ids = NULL;
	struct file_section section;
	int r;

	memcpy(&section, entry + attr_size, sizeof(section));
	if (!inside(&section, file_size) || section.size > FILE_IDS_MAX * 8ull)
		return perf_file_bad(file, offset, err, "an event's ids are outside of the file");
	r = read_section(file, &section, &ids, err);
	return r < 0 ? r : perf_file_add_attr(file, entry, attr_size, ids, section.size, offset,
					      err);
}

static int read_attrs(struct perf_file *file, const struct file_header *header,
		      uint64_t file_size, struct spulse_error **err)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	uint64_t count;
	int r;

	if (header->attr_size < PERF_ATTR_SIZE_VER0 + sizeof(struct file_section) ||
	    header->attr_size > 4096)
		return perf_file_bad(file, 16, err, "event descriptions of %llu bytes",
				     (unsigned long long)header->attr_size);
	count = header->attrs.size / header->attr_size;
	if (!inside(&header->attrs, file_size) || count == 0 || count > FILE_ATTRS_MAX)
		return perf_file_bad(file, 24, err, "no place for its event descriptions");
	r = read_section(file, &header->attrs, &bytes, err);
	for (uint64_t i = 0; i < count && r == 0; i++)
		r = read_attr(file, bytes + i * header->attr_size, header,
			      header->attrs.offset + i * header->attr_size, file_size, err);
	return r;
}

/* ---- features ---- */

static int read_feature(struct perf_file *file, unsigned int feature,
			const struct file_section *section, uint64_t file_size,
			struct spulse_error **err)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	int r;

	/* What says nothing that we use, or is broken, is no reason to refuse the samples. */
	if (!inside(section, file_size) || section->size > FILE_FEATURE_BYTES_MAX * 64ull ||
	    (section->size > FILE_FEATURE_BYTES_MAX && feature != FILE_FEATURE_BUILD_ID))
		return 0;
	r = read_section(file, section, &bytes, err);
	return r < 0 ? r : perf_file_add_feature(file, feature, bytes, section->size, err);
}

/* The table behind the data has one entry per bit that is set. */
static int read_features(struct perf_file *file, const struct file_header *header,
			 uint64_t file_size, struct spulse_error **err)
{
	uint64_t at = header->data.offset + header->data.size;
	int r = 0;

	for (unsigned int i = 0; i < FILE_FEATURES && r == 0; i++) {
		struct file_section section;
		ssize_t n;

		if (!(header->features[i / 64] >> (i % 64) & 1))
			continue;
		n = pread_full(file->bytes.fd, &section, sizeof(section), at);
		if (n != sizeof(section))
			return 0;
		at += sizeof(section);
		r = read_feature(file, i, &section, file_size, err);
	}
	return r;
}

/* ---- both kinds of file ---- */

static int read_file_head(struct perf_file *file, const uint8_t *bytes, struct spulse_error **err)
{
	struct file_header header;
	struct stat st;
	int r;

	memcpy(&header, bytes, sizeof(header));
	if (!file->bytes.seekable)
		return perf_file_bad(file, 0, err,
				     "it has to be a file: only \"perf record -o -\" can be piped");
	if (fstat(file->bytes.fd, &st) < 0)
		return err_io(err, errno, file->path, "cannot read its size");
	/* The writer was killed: everything up to the end is data, and no features follow. */
	if (header.data.size == 0) {
		file->info.truncated = true;
		header.data.size = (uint64_t)st.st_size - MIN(header.data.offset,
							      (uint64_t)st.st_size);
		memset(header.features, 0, sizeof(header.features));
	}
	if (header.data.offset > (uint64_t)st.st_size)
		return perf_file_bad(file, 40, err, "its data is outside of the file");
	if (header.data.size > (uint64_t)st.st_size - header.data.offset) {
		file->info.truncated = true;
		header.data.size = st.st_size - header.data.offset;
		memset(header.features, 0, sizeof(header.features));
	}
	r = read_attrs(file, &header, st.st_size, err);
	if (r == 0)
		r = read_features(file, &header, st.st_size, err);
	file->bytes.offset = header.data.offset;
	file->bytes.start = file->bytes.len = 0;
	file->bytes.end = header.data.offset + header.data.size;
	return r;
}

int perf_file_read_head(struct perf_file *file, struct spulse_error **err)
{
	const uint8_t *at;
	uint64_t size;
	int r = file_bytes_need(&file->bytes, 16, &at);

	if (r < 0)
		return err_io(err, -r, file->path, "cannot read");
	if (r > 0 && !memcmp(at, magic_swapped, sizeof(magic)))
		return err_file(err, SPULSE_ERROR_UNSUPPORTED, 0, file->path,
				"recorded on a big-endian machine");
	if (r == 0 || memcmp(at, magic, sizeof(magic)))
		return perf_file_bad(file, 0, err, "no perf.data file");
	size = load_u64(at + 8);
	if (size == 16) {
		file->pipe = true;
		file_bytes_skip(&file->bytes, 16);
		return perf_file_read_preamble(file, err);
	}
	if (size < sizeof(struct file_header) || size > FILE_RECORD_MAX)
		return perf_file_bad(file, 8, err, "a header of %llu bytes",
				     (unsigned long long)size);
	r = file_bytes_need(&file->bytes, sizeof(struct file_header), &at);
	if (r <= 0)
		return r < 0 ? err_io(err, -r, file->path, "cannot read") :
			       perf_file_bad(file, 0, err, "the header is cut off");
	return read_file_head(file, at, err);
}
