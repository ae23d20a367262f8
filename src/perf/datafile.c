/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* A perf.data file as a source of one stream. */
#include "datafile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>

#include "live.h"

int perf_file_bad(const struct perf_file *file, uint64_t offset, struct spulse_error **err,
		  const char *format, ...)
{
	struct strbuf text = { 0 };
	va_list args;
	int r;

	va_start(args, format);
	strbuf_vprintf(&text, format, args);
	va_end(args);
	r = text.failed ? err_no_memory(err) :
			  err_file(err, SPULSE_ERROR_INVALID_INPUT, 0, file->path,
				   "broken perf.data file at offset %llu: %s",
				   (unsigned long long)offset, text.data);
	strbuf_release(&text);
	return r;
}

/* ---- the source ---- */

static struct perf_file *file_of(struct perf_source *source)
{
	return (struct perf_file *)source;
}

static size_t file_streams(struct perf_source *source)
{
	(void)source;
	return 1;
}

static int file_snapshot(struct perf_source *source, size_t stream, struct spulse_error **err)
{
	(void)stream;
	return perf_file_read_until_ready(file_of(source), err);
}

static int file_front(struct perf_source *source, size_t stream, const struct perf_event **event,
		      struct spulse_error **err)
{
	struct perf_file *file = file_of(source);
	struct file_queued *queued;

	(void)stream;
	(void)err;
	if (file->next == file->ready)
		return 0;
	queued = file->queue.data[file->next];
	if (queued->event.type == PERF_RECORD_MMAP || queued->event.type == PERF_RECORD_MMAP2)
		perf_file_find_build_id(file, &queued->event.mmap);
	*event = &queued->event;
	return 1;
}

static void file_advance(struct perf_source *source, size_t stream)
{
	struct perf_file *file = file_of(source);

	(void)stream;
	if (file->next == file->ready)
		return;
	file->queue_bytes -= file->queue.data[file->next]->bytes;
	free(file->queue.data[file->next++]);
}

/* Nothing is borrowed from anyone. */
static int file_detach(struct perf_source *source, struct spulse_error **err)
{
	(void)source;
	(void)err;
	return 0;
}

static void file_free(struct perf_source *source)
{
	struct perf_file *file = file_of(source);

	for (size_t i = file->next; i < file->queue.len; i++)
		free(file->queue.data[i]);
	vec_free(&file->queue);
	file_unzip_free(file->unzip);
	file_bytes_release(&file->bytes);
	vec_free(&file->attrs);
	vec_free(&file->build_ids);
	u64map_release(&file->ids);
	u64map_release(&file->build_id_paths);
	arena_release(&file->strings);
	free(file->path);
	free(file);
}

static const struct perf_source_ops perf_file_ops = {
	.streams = file_streams,
	.snapshot = file_snapshot,
	.front = file_front,
	.advance = file_advance,
	.detach = file_detach,
	.free = file_free,
};

/* ---- opening ---- */

static int open_bytes(struct perf_file *file, struct spulse_error **err)
{
	struct stat st;

	file->bytes.fd = strcmp(file->path, "-") ? open(file->path, O_RDONLY | O_CLOEXEC) :
						   fcntl(0, F_DUPFD_CLOEXEC, 0);
	if (file->bytes.fd < 0)
		return err_io(err, errno, file->path, "cannot open");
	if (fstat(file->bytes.fd, &st) < 0)
		return err_io(err, errno, file->path, "cannot look at it");
	file->bytes.seekable = S_ISREG(st.st_mode);
	file->bytes.end = UINT64_MAX;
	return 0;
}

int perf_file_open(const char *path, struct perf_source **source_out,
		   const struct perf_file_info **info_out, struct spulse_error **err)
{
	struct perf_file *file = calloc(1, sizeof(*file));
	int r;

	if (!file)
		return err_no_memory(err);
	file->bytes.fd = -1;
	file->source.ops = &perf_file_ops;
	file->source.arch = PERF_ARCH_HOST;
	file->path = strdup(path);
	r = file->path ? open_bytes(file, err) : err_no_memory(err);
	if (r == 0)
		r = perf_file_read_head(file, err);
	if (r < 0) {
		file_free(&file->source);
		return r;
	}
	*source_out = &file->source;
	*info_out = &file->info;
	return 0;
}
