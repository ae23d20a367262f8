/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Which functions of a running process are busy, while it runs:
 *	live_top PID [SECONDS]
 * One thread records, the other reads the recorder's tail, names each distinct stack once and
 * counts. What was made of a stack is kept in a cache of ours, from which every update takes what
 * it outdates. The spool's space is given back as it is read.
 */
#include <stackpulse/stackpulse.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FUNCTIONS_MAX = 4096, STACKS_MAX = 16384, SHOWN = 10 };

struct function {
	char name[160];
	unsigned long samples;
};

struct top {
	struct function functions[FUNCTIONS_MAX];
	size_t count;
	unsigned long samples;
};

struct recording {
	struct spulse_recorder *recorder;
	pid_t pid;
	int seconds;
	struct spulse_error *err;
};

/* ---- the thread that records ---- */

static int record(struct recording *recording)
{
	time_t end = time(NULL) + recording->seconds;
	int r = 1;

	while (time(NULL) < end && r > 0) {
		r = spulse_recorder_poll(recording->recorder, 100000000, NULL, &recording->err);
		if (!r)
			r = spulse_recorder_process_is_active(recording->recorder, recording->pid,
							      &recording->err);
	}
	/* Also after a failure: it ends the tail. */
	if (r >= 0)
		r = spulse_recorder_finish(recording->recorder, NULL, &recording->err);
	return r;
}

static void *recording_thread(void *data)
{
	record(data);
	return NULL;
}

/* ---- the thread that reads ---- */

static struct function *find_function(struct top *top, const char *name)
{
	for (size_t i = 0; i < top->count; i++)
		if (!strcmp(top->functions[i].name, name))
			return &top->functions[i];
	if (top->count == FUNCTIONS_MAX)
		return NULL;
	snprintf(top->functions[top->count].name, sizeof(top->functions[0].name), "%s", name);
	return &top->functions[top->count++];
}

/* What we make of a stack: the function that was running. */
static struct function *leaf_of(struct top *top, const struct spulse_resolved *frames)
{
	char name[160] = "";

	if (spulse_resolved_count(frames))
		spulse_resolved_frame_display_name(spulse_resolved_at(frames, 0), name,
						   sizeof(name));
	return find_function(top, name);
}

static int count_stack(struct top *top, struct spulse_symbolizer *symbolizer,
		       struct spulse_stack_cache *cache, const struct spulse_stack *stack,
		       struct spulse_error **err)
{
	struct spulse_stack_key key = spulse_stack_key(stack);
	const struct spulse_resolved *frames;
	void *known;
	int r = 0;

	if (!spulse_stack_cache_lookup(cache, key, &known)) {
		r = spulse_symbolizer_resolve(symbolizer, stack, &frames, err);
		if (r < 0)
			return r;
		known = leaf_of(top, frames);
		r = spulse_stack_cache_insert(cache, key, frames, known, err);
	}
	if (known)
		((struct function *)known)->samples++;
	top->samples++;
	return r < 0 ? r : 0;
}

static int read_batch(struct top *top, struct spulse_tail *tail,
		      struct spulse_symbolizer *symbolizer, struct spulse_stack_cache *cache,
		      struct spulse_error **err)
{
	SPULSE_CLEANUP(stacks) stacks = NULL;
	const struct spulse_invalidation *stale;
	const struct spulse_batch *batch;
	const struct spulse_stack *stack;
	int r = spulse_tail_poll(tail, &batch, err);

	if (!r)
		r = spulse_symbolizer_update(symbolizer, batch, &stale, err);
	if (!r)
		r = spulse_batch_stacks(batch, &stacks, err);
	if (r < 0)
		return r;
	spulse_stack_cache_apply(cache, stale);
	while ((r = spulse_stacks_next(stacks, &stack, err)) > 0) {
		r = count_stack(top, symbolizer, cache, stack, err);
		if (r < 0)
			break;
	}
	return r;
}

static int compare_functions(const void *a, const void *b)
{
	const struct function *x = *(struct function *const *)a, *y = *(struct function *const *)b;

	return x->samples > y->samples ? -1 : x->samples < y->samples;
}

static void show(struct top *top)
{
	static struct function *order[FUNCTIONS_MAX];

	for (size_t i = 0; i < top->count; i++)
		order[i] = &top->functions[i];
	if (top->count)
		qsort(order, top->count, sizeof(order[0]), compare_functions);
	printf("%lu samples\n", top->samples);
	for (size_t i = 0; i < top->count && i < SHOWN; i++)
		printf("%6.1f %%  %s\n", 100.0 * order[i]->samples / top->samples, order[i]->name);
	putchar('\n');
	fflush(stdout);
}

/* Batches as they come, until the recording is over. */
static int follow(struct spulse_tail *tail, struct top *top, struct spulse_error **err)
{
	SPULSE_CLEANUP(symbolizer) symbolizer = NULL;
	SPULSE_CLEANUP(stack_cache) cache = NULL;
	enum spulse_tail_state state = SPULSE_TAIL_OPEN;
	time_t shown = time(NULL);
	int r;

	r = spulse_symbolizer_new(spulse_tail_source(tail),
				  SPULSE_OPTS(symbolizer_options,
					      .stack_cache = SPULSE_CACHE_EXTERNAL),
				  &symbolizer, err);
	if (!r)
		r = spulse_stack_cache_new(symbolizer, STACKS_MAX, NULL, NULL, &cache, err);
	while (!r) {
		r = spulse_tail_wait(tail, 1000000000, &state, err);
		if (r < 0 || (!r && state == SPULSE_TAIL_FINISHED))
			break;
		if (r > 0)
			r = read_batch(top, tail, symbolizer, cache, err);
		if (!r && time(NULL) > shown) {
			show(top);
			shown = time(NULL);
		}
	}
	return r;
}

static int run(pid_t pid, int seconds, struct top *top, struct spulse_error **err)
{
	char path[] = "/tmp/live_top-XXXXXX";
	int fd = mkstemp(path), r;
	struct recording recording = { .pid = pid, .seconds = seconds };
	struct spulse_tail *tail = NULL;
	pthread_t thread;

	if (fd < 0)
		return -1;
	unlink(path); /* The descriptor is enough; nobody else needs the file. */
	r = spulse_recorder_attach_fd(pid, fd, SPULSE_ATTACH_RUNNING,
				      SPULSE_OPTS(recorder_options, .frequency = 499,
						  .disposable = true,
						  .publish_interval_ns = 200000000),
				      &recording.recorder, err);
	if (!r)
		r = spulse_recorder_tail(recording.recorder, &tail, err);
	if (!r && !pthread_create(&thread, NULL, recording_thread, &recording)) {
		r = follow(tail, top, err);
		pthread_join(thread, NULL);
	}
	spulse_tail_free(tail);
	spulse_recorder_free(recording.recorder);
	spulse_error_free(recording.err);
	close(fd);
	return r;
}

int main(int argc, char **argv)
{
	struct spulse_error *err = NULL;
	struct top *top = calloc(1, sizeof(*top));
	int r;

	if (argc < 2 || argc > 3 || !top) {
		fprintf(stderr, "usage: %s PID [SECONDS]\n", argv[0]);
		return 2;
	}
	r = run(atoi(argv[1]), argc > 2 ? atoi(argv[2]) : 10, top, &err);
	if (r < 0)
		fprintf(stderr, "%s: %s\n", argv[0],
			err ? spulse_error_message(err) : "cannot make a temporary file");
	else
		show(top);
	spulse_error_free(err);
	free(top);
	return r < 0;
}
