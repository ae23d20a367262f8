/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_PERF_DATAFILE_H
#define SPULSE_PERF_DATAFILE_H

#include "perf.h"

/* A perf.data file. Everything in it may be wrong; no number sizes memory before it is checked. */

/* Records that only perf itself writes. */
enum {
	FILE_RECORD_ATTR = 64,
	FILE_RECORD_TRACING_DATA = 66,
	FILE_RECORD_BUILD_ID = 67,
	FILE_RECORD_FINISHED_ROUND = 68,
	FILE_RECORD_AUXTRACE = 71,
	FILE_RECORD_FEATURE = 80,
	FILE_RECORD_COMPRESSED = 81,
	FILE_RECORD_FINISHED_INIT = 82,
	FILE_RECORD_COMPRESSED2 = 83,
};

/* Header features, by bit. */
enum {
	FILE_FEATURE_BUILD_ID = 2,
	FILE_FEATURE_HOSTNAME = 3,
	FILE_FEATURE_OSRELEASE = 4,
	FILE_FEATURE_ARCH = 6,
	FILE_FEATURE_NRCPUS = 7,
	FILE_FEATURE_CMDLINE = 11,
	FILE_FEATURE_SAMPLE_TIME = 21,
	FILE_FEATURE_CLOCK_DATA = 29,
	FILE_FEATURES = 256,
};

enum {
	FILE_RECORD_MAX = 65535,
	FILE_ATTRS_MAX = 4096,
	FILE_IDS_MAX = 1 << 20,
	FILE_STRING_MAX = 64 << 10,
	FILE_FEATURE_BYTES_MAX = 1 << 20,
	FILE_BUILD_IDS_MAX = 1 << 16,
};

/* ---- bytes (dataread.c) ---- */

struct file_bytes {
	int fd;
	bool seekable;
	uint8_t *buf;
	size_t start, len; /* unread bytes are at buf + start */
	uint64_t offset;   /* of the first unread byte in the file */
	uint64_t end;	   /* nothing is read from here on; UINT64_MAX: to the end of the file */
};

/* Makes n bytes (at most FILE_RECORD_MAX) readable: 1 and where, 0 when the file ends before, or
 * -errno. */
int file_bytes_need(struct file_bytes *bytes, size_t n, const uint8_t **at);
void file_bytes_skip(struct file_bytes *bytes, size_t n);
/* Skips more than was made readable: as file_bytes_need(). */
int file_bytes_skip_far(struct file_bytes *bytes, uint64_t n);
void file_bytes_release(struct file_bytes *bytes);

/* ---- compressed records (datazip.c) ---- */

struct file_unzip; /* one stream over all compressed records */
/* Opens the stream; UNSUPPORTED when this build has no zstd. */
int file_unzip_new(struct file_unzip **unzip_out, struct spulse_error **err);
void file_unzip_put(struct file_unzip *unzip, const uint8_t *bytes, size_t len);
/*
 * The next record of the stream, aligned to 8 and valid until the next call: 1, 0 when the bytes
 * that were put are used up, or -EBADMSG.
 */
int file_unzip_record(struct file_unzip *unzip, const uint8_t **record, size_t *size);
void file_unzip_free(struct file_unzip *unzip);

/* ---- the file ---- */

struct file_attr {
	struct perf_layout layout;
	uint64_t frequency;
	bool has_stack;
};

/* A record that waits for its turn; its bytes follow. */
struct file_queued {
	uint64_t time, sequence;
	size_t bytes;
	struct perf_event event;
	uint8_t record[] __attribute__((aligned(8)));
};

struct perf_file {
	struct perf_source source; /* first: the source is this object */
	struct perf_file_info info;
	char *path;
	struct file_bytes bytes;
	bool pipe, at_end;
	struct arena strings;
	VEC(struct file_attr) attrs;
	struct u64map ids; /* event id -> index of its attr */
	size_t primary;	   /* whose samples are the profile */
	bool has_primary;
	VEC(struct perf_file_build_id) build_ids;
	struct u64map build_id_paths; /* hash of the path -> index */
	struct file_unzip *unzip;
	bool unzipping; /* it may hold more records */
	uint64_t unzip_offset;
	/* Sorted up to `ready`, of which `next` is the front. */
	VEC(struct file_queued *) queue;
	size_t next, ready, queue_bytes;
	uint64_t sequence, newest, flush_to;
	uint64_t unknown_events;
	bool dropped_order;
	uint8_t record[FILE_RECORD_MAX + 1] __attribute__((aligned(8)));
};

/* Bytes of waiting records above which the older half goes out, ordered or not. */
extern size_t perf_file_queue_limit;

/* Error about this file. */
int perf_file_bad(const struct perf_file *file, uint64_t offset, struct spulse_error **err,
		  const char *format, ...) SPULSE_PRINTF(4, 5);

/* Reads what comes before the data (datahead.c). */
int perf_file_read_head(struct perf_file *file, struct spulse_error **err);
/* An attr with its ids, as a record or in the header. */
int perf_file_add_attr(struct perf_file *file, const uint8_t *attr, size_t attr_size,
		       const uint8_t *ids, size_t ids_size, uint64_t offset,
		       struct spulse_error **err);
/* One feature's bytes (datafeature.c). */
int perf_file_add_feature(struct perf_file *file, unsigned int feature, const uint8_t *bytes,
			  size_t len, struct spulse_error **err);
/* One build-ID record, its header included. */
int perf_file_add_build_id(struct perf_file *file, const uint8_t *record, size_t size,
			   struct spulse_error **err);
/* Gives a mapping without a build ID the one of its path. */
void perf_file_find_build_id(const struct perf_file *file, struct perf_mmap_data *map);
/* Moves on in a stream until its first record of the data: 1, 0 at the end (datastream.c). */
int perf_file_read_until_ready(struct perf_file *file, struct spulse_error **err);
int perf_file_read_preamble(struct perf_file *file, struct spulse_error **err);
void perf_file_sort(struct perf_file *file, uint64_t up_to);

#endif
