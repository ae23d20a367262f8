/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TEST_TOOL_SPOOLMAKER_H
#define TEST_TOOL_SPOOLMAKER_H

/* Small recordings for tests, written with the library's writer. */

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <stackpulse/stackpulse.h>

struct spoolmaker {
	char path[64];
	int fd;
	struct spulse_spool_writer *writer;
};

static inline ssize_t spoolmaker_write(void *data, const void *bytes, size_t len)
{
	ssize_t n = write(((struct spoolmaker *)data)->fd, bytes, len);

	return n < 0 ? -errno : n;
}

static inline void spoolmaker_start(struct spoolmaker *maker)
{
	const struct spulse_output output = {.size = sizeof(output), .write = spoolmaker_write};
	const struct spulse_spool_header header = {
		.size = sizeof(header), .format = SPULSE_SPOOL_FORMAT_4, .interval = 1000000};

	strcpy(maker->path, "/tmp/stackpulse-test-XXXXXX");
	maker->fd = mkstemp(maker->path);
	assert_true(maker->fd >= 0);
	assert_int_equal(spulse_spool_writer_new(&output, maker, &header, &maker->writer, NULL), 0);
}

/* A mapping of 0x1000 bytes of a process, by default at file offset 0; gives its id. */
static inline uint32_t spoolmaker_module(struct spoolmaker *maker, pid_t pid, uint64_t start,
					 const char *path)
{
	const struct spulse_module_fields fields = {
		.size = sizeof(fields),
		.pid = pid,
		.start = start,
		.end = start + 0x1000,
		.path = path,
		.path_len = strlen(path),
	};
	uint32_t id;

	assert_int_equal(spulse_spool_writer_module(maker->writer, &fields, &id, NULL), 0);
	return id;
}

/* An annotation as a recorder writes it. */
static inline void spoolmaker_annotation(struct spoolmaker *maker, pid_t pid, const char *text)
{
	char path[256];
	struct spulse_module_fields fields = {.size = sizeof(fields), .pid = pid, .path = path};
	uint32_t id;

	fields.path_len = (size_t)snprintf(path, sizeof(path), "//stackpulse/%s", text);
	assert_int_equal(spulse_spool_writer_module(maker->writer, &fields, &id, NULL), 0);
}

/* A sample of addresses within a module, innermost first; 0 stands for the truncation marker. */
static inline void spoolmaker_sample(struct spoolmaker *maker, uint64_t time_ns, pid_t pid,
				     pid_t tid, uint32_t module, const uint64_t *addresses,
				     size_t count)
{
	const struct spulse_sample sample = {.timestamp_ns = time_ns, .pid = pid, .tid = tid};
	static struct spulse_frame frames[20000];

	assert_true(count <= sizeof(frames) / sizeof(*frames));
	for (size_t i = 0; i < count; i++) {
		frames[i] = (struct spulse_frame){
			.file_relative_ip = addresses[i] & 0xfff,
			.abs_ip = addresses[i],
			.module_id = module,
			.mode = SPULSE_FRAME_USER,
		};
		if (!addresses[i])
			frames[i] = spulse_frame_truncated_marker();
	}
	assert_int_equal(spulse_spool_writer_sample(maker->writer, &sample, frames, count, NULL),
			 0);
}

static inline void spoolmaker_finish(struct spoolmaker *maker)
{
	assert_int_equal(spulse_spool_writer_finish(maker->writer, NULL), 0);
	spulse_spool_writer_free(maker->writer);
	close(maker->fd);
}

#endif
