/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Samples taken together are what they are one by one, wherever the bytes end and whatever is
 * wrong with them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "random.h"
#include "spool/run.h"

enum { THREADS = 200, NODES = 70000, SAMPLES = 40, BYTES = SAMPLES * SMALL_RECORD_MAX };

/* A number, sometimes with more bytes than it needs. */
static uint8_t *put(uint8_t *p, uint64_t value, int padding)
{
	p = varint_put(p, value);
	for (; padding; padding--) {
		p[-1] |= 0x80;
		*p++ = 0;
	}
	return p;
}

static int padding(struct random *rng)
{
	return random_below(rng, 40) ? 0 : random_below(rng, 5);
}

/* Below the limit; rarely the limit itself. */
static uint64_t maybe_just_wrong(struct random *rng, uint64_t limit)
{
	return random_below(rng, 500) ? random_below(rng, limit) : limit;
}

static uint8_t *put_sample(uint8_t *p, struct random *rng, uint64_t *ns)
{
	static const int64_t spans[] = { 100, 1 << 13, 1 << 20, 1 << 27, 1ll << 34 };
	int64_t span = spans[random_below(rng, 5)];
	int64_t delta = (int64_t)random_below(rng, 2 * span) - span / 4;

	if ((int64_t)(*ns + delta) < 0)
		delta = 1;
	*ns += delta;
	*p++ = TAG_SAMPLE;
	p = put(p, zigzag(delta), padding(rng));
	p = put(p, maybe_just_wrong(rng, THREADS), padding(rng));
	return put(p, maybe_just_wrong(rng, random_below(rng, 2) ? NODES : 200), padding(rng));
}

static struct sample_run run_over(const uint8_t *bytes, size_t len, uint64_t ns)
{
	return (struct sample_run){ bytes, bytes + len, ns, THREADS, NODES };
}

/* One by one; the bytes behind `len` are readable, but not part of it. */
static size_t take_singly(struct sample_run *run, struct raw_sample *out, size_t max)
{
	size_t count = 0;

	while (count < max && run->p < run->end && *run->p == TAG_SAMPLE) {
		const uint8_t *p = take_sample(run->p, run->last_ns, THREADS, NODES, &out[count]);

		if (!p || p > run->end)
			break;
		run->p = p;
		run->last_ns = out[count++].timestamp_ns;
	}
	return count;
}

/* Takes all there are, `max` at once, with the single step for what a run leaves at its end. */
static size_t take_all(struct sample_run *run, struct raw_sample *out, size_t max)
{
	size_t total = 0, count;

	do {
		count = run_take(run, out + total, max < SAMPLES - total ? max : SAMPLES - total);
		assert_true(count <= max);
		if (!count)
			count = take_singly(run, out + total, total < SAMPLES);
		total += count;
	} while (count);
	return total;
}

static void compare(const uint8_t *bytes, size_t len, uint64_t ns, size_t max)
{
	static const struct spulse_thread threads[THREADS] = { [7] = { 1, 7 }, [8] = { 2, 8 } };
	struct sample_run one = run_over(bytes, len, ns), many = one, skip = one, public = one;
	struct raw_sample expected[SAMPLES + 1], found[SAMPLES + 1];
	struct spulse_sample samples[SAMPLES];
	size_t count = take_singly(&one, expected, SAMPLES), skipped, shown;

	assert_int_equal(take_all(&many, found, max), count);
	assert_ptr_equal(many.p, one.p);
	assert_int_equal(many.last_ns, one.last_ns);
	if (count)
		assert_memory_equal(found, expected, count * sizeof(*found));
	skipped = run_skip(&skip);
	assert_true(skipped <= count && skip.p <= one.p);
	shown = run_take_samples(&public, threads, samples, SAMPLES);
	assert_true(shown <= count);
	for (size_t i = 0; i < shown; i++) {
		assert_int_equal(samples[i].timestamp_ns, expected[i].timestamp_ns);
		assert_int_equal(samples[i].tid, threads[expected[i].thread].tid);
	}
}

static void check(struct random *rng, bool damage)
{
	uint8_t bytes[BYTES + RUN_SLACK] = { 0 }, *p = bytes;
	uint64_t first = random_below(rng, 2) ? random_below(rng, 1 << 20) : 0, ns = first;
	size_t count = 1 + random_below(rng, SAMPLES - 1), len;

	for (size_t i = 0; i < count; i++)
		p = put_sample(p, rng, &ns);
	len = p - bytes;
	/* What follows a window must not matter. */
	memset(p, random_below(rng, 2) ? 0xff : TAG_SAMPLE, RUN_SLACK);
	if (damage)
		bytes[random_below(rng, len)] ^= 1 << random_below(rng, 8);
	compare(bytes, random_below(rng, len + 1), first, SAMPLES);
	compare(bytes, len, first, 1 + random_below(rng, SAMPLES));
	/* Times that reach the limits of their 64 bits. */
	compare(bytes, len, UINT64_MAX - random_below(rng, 1 << 20), SAMPLES);
	compare(bytes, len, INT64_MAX - random_below(rng, 1 << 20), SAMPLES);
}

static void test_random(void **state)
{
	struct random rng = { .state = 20 };

	(void)state;
	for (int i = 0; i < 20000; i++)
		check(&rng, i & 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
