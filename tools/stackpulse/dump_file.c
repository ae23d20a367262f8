/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "dump_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dump_json.h"
#include "mem.h"

struct kept_stacks {
	struct kept_stack *items;
	size_t count;
	size_t capacity;
};

static int dump_stacks(struct json *json, const struct spulse_source *source,
		       struct spulse_stacks *stacks, struct spulse_error **err)
{
	int r;

	dump_json_begin_document(json, source, spulse_source_recovered_from_truncated_tail(source));
	r = dump_json_stacks(json, source, stacks, err);
	if (r == 0)
		dump_json_end_document(json);
	return r;
}

static int dump_snapshot(struct json *json, const char *path, struct spulse_error **err)
{
	SPULSE_CLEANUP(snapshot) snapshot = NULL;
	SPULSE_CLEANUP(stacks) stacks = NULL;
	int r = spulse_snapshot_open(path, &snapshot, err);

	if (r == 0)
		r = spulse_snapshot_stacks(snapshot, &stacks, err);
	return r ? r : dump_stacks(json, spulse_snapshot_source(snapshot), stacks, err);
}

static int dump_replay(struct json *json, const char *path, struct spulse_error **err)
{
	SPULSE_CLEANUP(replay) replay = NULL;
	SPULSE_CLEANUP(stacks) stacks = NULL;
	int r = spulse_replay_open(path, &replay, err);

	if (r == 0)
		r = spulse_replay_stacks(replay, &stacks, err);
	return r ? r : dump_stacks(json, spulse_replay_source(replay), stacks, err);
}

static int keep_batch(struct kept_stacks *kept, const struct spulse_batch *batch,
		      struct spulse_error **err)
{
	SPULSE_CLEANUP(stacks) stacks = NULL;
	const struct spulse_stack *stack;
	int r = spulse_batch_stacks(batch, &stacks, err);

	while (r == 0 && (r = spulse_stacks_next(stacks, &stack, err)) > 0) {
		MEM_PUSH(kept->items, kept->count, kept->capacity) = (struct kept_stack){
			*spulse_stack_sample(stack),
			spulse_stack_key(stack).node,
		};
		r = 0;
	}
	return r;
}

static int read_tail(struct spulse_tail *tail, struct kept_stacks *kept, struct spulse_error **err)
{
	const struct spulse_batch *batch;
	int r;

	do {
		r = spulse_tail_poll(tail, &batch, err);
		if (r == 0)
			r = keep_batch(kept, batch, err);
	} while (r == 0 && spulse_batch_has_more(batch));
	return r;
}

static int dump_tail(struct json *json, const char *path, struct spulse_error **err)
{
	SPULSE_CLEANUP(tail) tail = NULL;
	struct spulse_tail_stats stats = {.size = sizeof(stats)};
	struct kept_stacks kept = {0};
	const struct spulse_source *source;
	int r = spulse_tail_open(path, &tail, err);

	if (r == 0)
		r = read_tail(tail, &kept, err);
	if (r == 0) {
		source = spulse_tail_source(tail);
		spulse_tail_stats(tail, &stats);
		/* A tail takes an incomplete record as one that is still to come. */
		dump_json_begin_document(json, source,
					 stats.consumed_bytes < stats.published_bytes);
		for (size_t i = 0; i < kept.count; i++)
			dump_json_kept(json, source, &kept.items[i]);
		dump_json_end_document(json);
	}
	free(kept.items);
	return r;
}

static int json_batch(struct json *json, const struct spulse_batch *batch,
		      struct spulse_error **err)
{
	struct kept_stacks kept = {0};
	const pid_t *pids;
	size_t count;
	int r = keep_batch(&kept, batch, err);

	pids = spulse_batch_processes(batch, &count);
	json_begin_object(json);
	json_field_uint(json, "samples", kept.count);
	dump_json_pids(json, pids, count);
	json_field_bool(json, "has_more", spulse_batch_has_more(batch));
	json_key(json, "timestamps");
	json_begin_array(json);
	for (size_t i = 0; i < kept.count; i++)
		json_uint(json, kept.items[i].sample.timestamp_ns);
	json_end_array(json);
	json_end_object(json);
	free(kept.items);
	return r;
}

/* Opens the tail at the first step, then polls until nothing more is there. */
static int json_batches(struct json *json, const char *path, struct spulse_tail **tail,
			struct spulse_error **err)
{
	const struct spulse_batch *batch;
	int r = *tail ? 0 : spulse_tail_open(path, tail, err);

	json_key(json, "batches");
	json_begin_array(json);
	while (r == 0 && (r = spulse_tail_poll(*tail, &batch, err)) == 0) {
		r = json_batch(json, batch, err);
		if (!spulse_batch_has_more(batch))
			break;
	}
	json_end_array(json);
	return r;
}

/* Makes the copy as long as asked, from the bytes of the file. */
static int set_visible(int copy, const char *bytes, size_t len, uint64_t visible)
{
	if (visible > len)
		visible = len;
	if (ftruncate(copy, (off_t)visible) < 0)
		return -1;
	return pwrite(copy, bytes, visible, 0) == (ssize_t)visible ? 0 : -1;
}

static char *read_whole(const char *path, size_t *len_out)
{
	FILE *file = fopen(path, "re");
	char *bytes = NULL;
	size_t len = 0, cap = 0, n = 1;

	if (!file)
		return NULL;
	while (n) {
		bytes = mem_grow(bytes, &cap, len + 65536, 1);
		n = fread(bytes + len, 1, 65536, file);
		len += n;
	}
	if (ferror(file)) {
		free(bytes);
		bytes = NULL;
	}
	fclose(file);
	*len_out = len;
	return bytes;
}

static int dump_steps(struct json *json, const struct grow_steps *grow, int copy,
		      const char *bytes, size_t len)
{
	SPULSE_CLEANUP(tail) tail = NULL;
	struct spulse_error *err = NULL;
	char path[64];
	int r = 0;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", copy);
	json_begin_object(json);
	json_key(json, "steps");
	json_begin_array(json);
	for (size_t i = 0; r == 0 && i < grow->count; i++) {
		json_begin_object(json);
		json_field_uint(json, "visible", grow->lengths[i]);
		if (set_visible(copy, bytes, len, grow->lengths[i]) < 0)
			tool_message("cannot copy the file: %s", strerror(errno));
		r = json_batches(json, path, &tail, &err);
		if (r < 0)
			dump_json_error(json, err);
		json_end_object(json);
	}
	json_end_array(json);
	json_end_object(json);
	json_end_line(json);
	spulse_error_free(err);
	return r < 0 ? TOOL_FAILED : TOOL_DONE;
}

int dump_growing(struct json *json, const char *path, const struct grow_steps *grow)
{
	size_t len = 0;
	char *bytes = read_whole(path, &len);
	int copy = memfd_create("growing", MFD_CLOEXEC), status;

	if (!bytes || copy < 0) {
		tool_message("%s: cannot read: %s", path, strerror(errno));
		free(bytes);
		return TOOL_FAILED;
	}
	status = dump_steps(json, grow, copy, bytes, len);
	close(copy);
	free(bytes);
	return status;
}

int dump_file(struct json *json, const char *path, enum dump_reader reader)
{
	struct spulse_error *err = NULL;
	int r;

	r = reader == DUMP_SNAPSHOT ? dump_snapshot(json, path, &err)
	    : reader == DUMP_REPLAY ? dump_replay(json, path, &err)
				    : dump_tail(json, path, &err);
	if (r == 0)
		return TOOL_DONE;
	/* The file changed after it was checked: half of the document is out already. */
	if (json->depth)
		return tool_fail(err);
	json_begin_object(json);
	json_field_text(json, "outcome", "error");
	dump_json_error(json, err);
	json_end_object(json);
	json_end_line(json);
	spulse_error_free(err);
	return TOOL_FAILED;
}
