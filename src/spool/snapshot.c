/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "reader.h"
#include "stacks.h"

enum { BLOCK_SAMPLES = 256 };

struct spulse_snapshot {
	struct spulse_source source;
	VEC(struct raw_sample) samples;
	_Atomic(struct spulse_sample *) public; /* made when asked for */
	struct spulse_stack stack; /* what spulse_snapshot_stack() hands out */
};

/* A run of samples, the first of which was decoded already. */
static bool take_samples(struct spulse_snapshot *snapshot, struct decoder *d)
{
	size_t count;

	if (!vec_push(&snapshot->samples, d->sample))
		return false;
	do {
		if (!vec_reserve(&snapshot->samples, BLOCK_SAMPLES))
			return false;
		count = decode_samples(d, snapshot->samples.data + snapshot->samples.len,
				       BLOCK_SAMPLES);
		snapshot->samples.len += count;
	} while (count);
	return true;
}

static int read_all(struct spulse_snapshot *snapshot, struct decoder *d,
		    struct spulse_error **err)
{
	int r;

	while ((r = decode_next(d, err)) > 0 && r != DECODE_CUT)
		if (r == TAG_SAMPLE) {
			note_first_sample(&snapshot->source, d->sample.timestamp_ns);
			if (!take_samples(snapshot, d))
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
	vec_free(&snapshot->samples);
	free(atomic_load(&snapshot->public));
	source_release(&snapshot->source);
	free(snapshot);
}

const struct spulse_source *spulse_snapshot_source(const struct spulse_snapshot *snapshot)
{
	return &snapshot->source;
}

/* Whoever comes first makes the array; several threads may ask at once. */
static struct spulse_sample *make_public(struct spulse_snapshot *snapshot)
{
	size_t count = snapshot->samples.len;
	struct spulse_sample *made = malloc(count * sizeof(*made)), *other = NULL;

	if (!made)
		return NULL;
	for (size_t i = 0; i < count; i++)
		made[i] = sample_from_raw(&snapshot->source, &snapshot->samples.data[i]);
	if (atomic_compare_exchange_strong(&snapshot->public, &other, made))
		return made;
	free(made);
	return other;
}

const struct spulse_sample *spulse_snapshot_samples(const struct spulse_snapshot *snapshot,
						    size_t *count_out)
{
	struct spulse_sample *samples = atomic_load(&snapshot->public);

	*count_out = 0;
	if (!samples && snapshot->samples.len)
		samples = make_public((struct spulse_snapshot *)snapshot);
	if (samples)
		*count_out = snapshot->samples.len;
	return samples;
}

int spulse_snapshot_stack(struct spulse_snapshot *snapshot, size_t index,
			  const struct spulse_stack **stack_out,
			  struct spulse_error **err __attribute__((unused)))
{
	const struct raw_sample *raw;

	if (index >= snapshot->samples.len)
		return 0;
	raw = &snapshot->samples.data[index];
	snapshot->stack.sample = sample_from_raw(&snapshot->source, raw);
	snapshot->stack.node = raw->node;
	*stack_out = &snapshot->stack;
	return 1;
}

int spulse_snapshot_stacks(const struct spulse_snapshot *snapshot,
			   struct spulse_stacks **stacks_out, struct spulse_error **err)
{
	return stacks_over_array(&snapshot->source, snapshot->samples.data,
				 snapshot->samples.len, stacks_out, err);
}
