/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "reader.h"
#include "stacks.h"

struct spulse_snapshot {
	struct spulse_source source;
	struct sample_store store;
	struct spulse_stack stack; /* what spulse_snapshot_stack() hands out */
};

static int read_all(struct spulse_snapshot *snapshot, struct decoder *d,
		    struct spulse_error **err)
{
	int r;

	while ((r = decode_next(d, err)) > 0 && r != DECODE_CUT)
		if (r == TAG_SAMPLE) {
			note_first_sample(&snapshot->source, d->sample.timestamp_ns);
			if (!sample_store_add(&snapshot->store, &snapshot->source, &d->sample))
				return err_no_memory(err);
		}
	return reader_close(d, r, err);
}

static int load(struct spulse_snapshot *snapshot, const char *path, struct spulse_error **err)
{
	_cleanup_close_ int fd = -1;
	struct decoder d = { 0 };
	uint64_t size;
	int r;

	r = source_init(&snapshot->source, path, err);
	if (r == 0)
		r = input_open_file(path, &fd, &size, err);
	if (r == 0)
		r = decode_open(&d, fd, size, &snapshot->source, err);
	if (r == 0)
		r = read_all(snapshot, &d, err);
	decode_release(&d);
	return r;
}

int spulse_snapshot_open(const char *path, struct spulse_snapshot **snapshot_out,
			 struct spulse_error **err)
{
	struct spulse_snapshot *snapshot = calloc(1, sizeof(*snapshot));
	int r;

	if (!snapshot)
		return err_no_memory(err);
	r = load(snapshot, path, err);
	if (r < 0) {
		spulse_snapshot_free(snapshot);
		return r;
	}
	snapshot->stack.source = &snapshot->source;
	*snapshot_out = snapshot;
	return 0;
}

void spulse_snapshot_free(struct spulse_snapshot *snapshot)
{
	if (!snapshot)
		return;
	sample_store_release(&snapshot->store);
	source_release(&snapshot->source);
	free(snapshot);
}

const struct spulse_source *spulse_snapshot_source(const struct spulse_snapshot *snapshot)
{
	return &snapshot->source;
}

const struct spulse_sample *spulse_snapshot_samples(const struct spulse_snapshot *snapshot,
						    size_t *count_out)
{
	*count_out = snapshot->store.samples.len;
	return snapshot->store.samples.data;
}

int spulse_snapshot_stack(struct spulse_snapshot *snapshot, size_t index,
			  const struct spulse_stack **stack_out,
			  struct spulse_error **err __attribute__((unused)))
{
	if (index >= snapshot->store.samples.len)
		return 0;
	snapshot->stack.sample = snapshot->store.samples.data[index];
	snapshot->stack.node = snapshot->store.nodes.data[index];
	*stack_out = &snapshot->stack;
	return 1;
}

int spulse_snapshot_stacks(const struct spulse_snapshot *snapshot,
			   struct spulse_stacks **stacks_out, struct spulse_error **err)
{
	return stacks_over_store(&snapshot->source, &snapshot->store, stacks_out, err);
}
