/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Where one number ends is where the next one begins, and waiting for that is what makes numbers
 * of varying length slow. So it is noted beforehand, a bit for each of 64 bytes, which bytes end a
 * number: a sample is four such bits, and from one sample to the next there are only a few
 * operations on bits. The numbers are put together beside that chain. What can be wrong with them
 * is gathered and looked at once in the end; when there is something, the samples are taken again
 * one by one, up to the one that is wrong.
 */
#include "run.h"

#ifdef __x86_64__
#include <immintrin.h>
#include <pthread.h>
#endif

/* Where the samples go: one of the two. */
struct run_out {
	struct raw_sample *raw;
	struct spulse_sample *samples;
	const struct spulse_thread *threads;
};

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* Thread and node in one word, the thread below. */
static ALWAYS_INLINE void give_raw(struct raw_sample *sample, uint64_t ns, uint64_t thread_node)
{
	sample->timestamp_ns = ns;
	memcpy(&sample->thread, &thread_node, sizeof(thread_node));
}

static ALWAYS_INLINE void give_public(const struct run_out *out, size_t i, size_t threads,
				      uint64_t ns, uint32_t thread)
{
	/* A thread that is not there is found later; until then any will do. */
	const struct spulse_thread *t = &out->threads[thread < threads ? thread : 0];

	out->samples[i] = (struct spulse_sample){ ns, t->pid, t->tid };
}

/* One by one, stopping before what is wrong. */
static size_t take_carefully(struct sample_run *run, const struct run_out *out, size_t max)
{
	struct raw_sample sample;
	size_t count = 0;

	while (count < max && run->end - run->p >= SMALL_RECORD_MAX && *run->p == TAG_SAMPLE) {
		const uint8_t *p = take_sample(run->p, run->last_ns, run->threads, run->nodes,
					       &sample);

		if (!p)
			break;
		if (out->raw)
			out->raw[count++] = sample;
		else
			give_public(out, count++, run->threads, sample.timestamp_ns, sample.thread);
		run->p = p;
		run->last_ns = sample.timestamp_ns;
	}
	return count;
}

#ifdef __x86_64__

#define TARGET __attribute__((target("avx2,bmi,bmi2")))

static inline uint64_t without_lowest(uint64_t bits)
{
	return bits & (bits - 1);
}

/*
 * A sample whose three numbers have one to four bytes each, by the twelve bits that follow the
 * one of its tag: which of the shuffles brings the numbers into words of their own.
 */
enum { SHAPE_BITS = 12, SHAPES = 64, SHAPE_NONE = 255 };

static uint8_t shapes[1 << SHAPE_BITS];
static uint8_t shuffles[SHAPES][16];
static pthread_once_t shapes_once = PTHREAD_ONCE_INIT;

/* The delta goes to the first word, the thread to the third, the node to the last. */
static void make_shuffle(uint8_t *shuffle, int delta, int thread, int node)
{
	memset(shuffle, 0x80, 16);
	for (int i = 0; i < delta; i++)
		shuffle[i] = i;
	for (int i = 0; i < thread; i++)
		shuffle[8 + i] = delta + i;
	for (int i = 0; i < node; i++)
		shuffle[12 + i] = delta + thread + i;
}

static void make_shapes(void)
{
	memset(shapes, SHAPE_NONE, sizeof(shapes));
	for (unsigned int bits = 0; bits < 1 << SHAPE_BITS; bits++) {
		unsigned int bits2 = without_lowest(bits), bits3 = without_lowest(bits2);
		int delta, thread, node;

		if (!bits3)
			continue;
		delta = __builtin_ctz(bits) + 1;
		thread = __builtin_ctz(bits2) + 1 - delta;
		node = __builtin_ctz(bits3) + 1 - delta - thread;
		if (delta > 4 || thread > 4 || node > 4)
			continue;
		shapes[bits] = (delta - 1) * 16 + (thread - 1) * 4 + (node - 1);
		make_shuffle(shuffles[shapes[bits]], delta, thread, node);
	}
}

/* A bit for each of 64 bytes that ends a number; none for those behind the first `len`. */
TARGET static ALWAYS_INLINE uint64_t ends_of_numbers(const uint8_t *p, size_t len)
{
	uint32_t low = _mm256_movemask_epi8(_mm256_loadu_si256((const __m256i *)p));
	uint32_t high = _mm256_movemask_epi8(_mm256_loadu_si256((const __m256i *)(p + 32)));
	uint64_t ends = ~(low | (uint64_t)high << 32);

	return likely(len >= 64) ? ends : ends & (((uint64_t)1 << len) - 1);
}

/* The numbers of one shape that begin at p, each in its word. */
TARGET static ALWAYS_INLINE __m128i three_numbers(const uint8_t *p, size_t shape)
{
	const __m128i low = _mm_set1_epi8(0x7f), by7 = _mm_set1_epi16((short)0x8001);
	const __m128i by14 = _mm_set1_epi32(0x40000001);
	__m128i v = _mm_loadu_si128((const __m128i *)p);

	v = _mm_shuffle_epi8(v, _mm_loadu_si128((const __m128i *)shuffles[shape]));
	/* Seven bits of each byte: two make a half, two halves make a word. */
	v = _mm_maddubs_epi16(by7, _mm_and_si128(v, low));
	return _mm_madd_epi16(v, by14);
}

/* Shape of the numbers that end as the bits after the lowest `at` + 1 say. */
static ALWAYS_INLINE size_t shape_of(uint64_t ends, size_t at)
{
	return shapes[ends >> 1 >> (at & 63) & ((1 << SHAPE_BITS) - 1)];
}

/* What is known of the samples taken so far. */
struct gathered {
	uint64_t ns;
	uint64_t sign; /* of all times */
	__m128i most; /* the highest of each number */
	size_t count;
};

/* Times of four samples from their deltas, each in the first word of its vector. */
TARGET static ALWAYS_INLINE __m256i four_times(const __m128i v[4], __m256i base)
{
	__m128i deltas = _mm_unpacklo_epi64(_mm_unpacklo_epi32(v[0], v[1]),
					    _mm_unpacklo_epi32(v[2], v[3]));
	__m128i odd = _mm_and_si128(deltas, _mm_set1_epi32(1));
	__m256i sums, second;

	deltas = _mm_xor_si128(_mm_srli_epi32(deltas, 1), _mm_sub_epi32(_mm_setzero_si128(), odd));
	sums = _mm256_cvtepi32_epi64(deltas);
	sums = _mm256_add_epi64(sums, _mm256_slli_si256(sums, 8));
	second = _mm256_permute4x64_epi64(sums, 0x55);
	sums = _mm256_add_epi64(sums, _mm256_blend_epi32(_mm256_setzero_si256(), second, 0xf0));
	return _mm256_add_epi64(sums, base);
}

/* Each time with the thread and node that are the upper half of its vector. */
TARGET static ALWAYS_INLINE void give_four_raw(__m128i *to, const __m128i v[4], __m256i times)
{
	__m128i low = _mm256_castsi256_si128(times), high = _mm256_extracti128_si256(times, 1);

	_mm_storeu_si128(to, _mm_blend_epi16(low, v[0], 0xf0));
	_mm_storeu_si128(to + 1, _mm_unpackhi_epi64(low, v[1]));
	_mm_storeu_si128(to + 2, _mm_blend_epi16(high, v[2], 0xf0));
	_mm_storeu_si128(to + 3, _mm_unpackhi_epi64(high, v[3]));
}

/* Each time with what its thread is. One that is not there is found later; until then the last
 * will do. */
TARGET static ALWAYS_INLINE void give_four_public(__m128i *to, const struct spulse_thread *threads,
						  __m128i last_thread, const __m128i v[4],
						  __m256i times)
{
	__m128i low = _mm256_castsi256_si128(times), high = _mm256_extracti128_si256(times, 1);
	const __m128i time[4] = { low, _mm_unpackhi_epi64(low, low), high,
				  _mm_unpackhi_epi64(high, high) };

#pragma GCC unroll 4
	for (int i = 0; i < 4; i++) {
		uint32_t thread = _mm_extract_epi32(_mm_min_epu32(v[i], last_thread), 2);
		__m128i ids = _mm_loadl_epi64((const __m128i *)&threads[thread]);

		_mm_storeu_si128(to + i, _mm_unpacklo_epi64(time[i], ids));
	}
}

/*
 * The numbers of four samples at `p`, which has 64 bytes, when all of them are plain; returns the
 * samples' bytes, or 0. The ends of whole samples are every fourth end of a number.
 */
TARGET static ALWAYS_INLINE size_t four_samples(const uint8_t *p, __m128i v[4])
{
	uint64_t ends = ends_of_numbers(p, 64), lasts = _pdep_u64(0x8888, ends);
	size_t at[5] = { 0 }, shape[4], shapes_seen = 0;
	unsigned int other_tags = 0;

#pragma GCC unroll 4
	for (int i = 0; i < 4; i++) {
		shape[i] = shape_of(ends, at[i]);
		shapes_seen |= shape[i];
		other_tags |= p[at[i]] ^ TAG_SAMPLE;
		at[i + 1] = _tzcnt_u64(lasts) + 1;
		lasts = without_lowest(lasts);
	}
	/* No shape has the bits of SHAPE_NONE. */
	if (unlikely(shapes_seen >= SHAPES || other_tags || at[4] > 64))
		return 0;
#pragma GCC unroll 4
	for (int i = 0; i < 4; i++)
		v[i] = three_numbers(p + at[i] + 1, shape[i]);
	return at[4];
}

/* Fours of samples as far as they go; returns their bytes. */
TARGET static ALWAYS_INLINE size_t take_fours(const struct sample_run *run, const uint8_t *begin,
					      const struct run_out *out, bool raw, size_t max,
					      struct gathered *g)
{
	const __m128i last_thread = _mm_set1_epi32((uint32_t)(run->threads - 1));
	__m256i base = _mm256_set1_epi64x(g->ns), signs = base;
	const uint8_t *p = begin;
	__m128i v[4];

	while (max - g->count >= 4 && run->end - p >= 64) {
		size_t bytes = four_samples(p, v);
		__m256i times;

		if (!bytes)
			break;
		for (int i = 0; i < 4; i++)
			g->most = _mm_max_epu32(g->most, v[i]);
		times = four_times(v, base);
		signs = _mm256_or_si256(signs, times);
		base = _mm256_permute4x64_epi64(times, 0xff);
		if (raw)
			give_four_raw((__m128i *)(out->raw + g->count), v, times);
		else
			give_four_public((__m128i *)(out->samples + g->count), out->threads,
					 last_thread, v, times);
		g->count += 4;
		p += bytes;
	}
	g->ns = _mm256_extract_epi64(base, 0);
	if (_mm256_movemask_pd(_mm256_castsi256_pd(signs)))
		g->sign = UINT64_MAX;
	return p - begin;
}

/* What else there is within 64 bytes at `p`; returns its bytes. */
TARGET static ALWAYS_INLINE size_t take_rest(const struct sample_run *run, const uint8_t *p,
					     const struct run_out *out, bool raw, size_t max,
					     struct gathered *g)
{
	uint64_t ends = ends_of_numbers(p, run->end - p);
	size_t at = 0;

	while (g->count < max) {
		uint64_t last = without_lowest(without_lowest(without_lowest(ends)));
		size_t shape = shape_of(ends, at);
		uint32_t delta;
		__m128i v;

		/* In this order: with a shape all of its bytes are in the window. */
		if (shape == SHAPE_NONE || p[at] != TAG_SAMPLE)
			break;
		v = three_numbers(p + at + 1, shape);
		g->most = _mm_max_epu32(g->most, v);
		delta = _mm_cvtsi128_si32(v);
		g->ns += (int64_t)(int32_t)(delta >> 1 ^ -(delta & 1));
		g->sign |= g->ns;
		if (raw)
			give_raw(&out->raw[g->count++], g->ns, _mm_extract_epi64(v, 1));
		else
			give_public(out, g->count++, run->threads, g->ns, _mm_extract_epi32(v, 2));
		at = _tzcnt_u64(last) + 1;
		ends = without_lowest(last);
	}
	return at;
}

/* Some processors have the instruction, but are slow at it. */
static bool pdep_is_fast(void)
{
	return !__builtin_cpu_is("amdfam15h") && !__builtin_cpu_is("znver1") &&
	       !__builtin_cpu_is("znver2");
}

TARGET static ALWAYS_INLINE size_t take(struct sample_run *run, const struct run_out *out,
					bool raw, size_t max)
{
	struct gathered g = { .ns = run->last_ns, .sign = run->last_ns };
	const uint8_t *p = run->p;
	size_t step;

	g.most = _mm_setzero_si128();
	do {
		if (pdep_is_fast())
			p += take_fours(run, p, out, raw, max, &g);
		step = p < run->end ? take_rest(run, p, out, raw, max, &g) : 0;
		p += step;
	} while (step);
	if (!g.count || (int64_t)g.sign < 0 ||
	    (uint32_t)_mm_extract_epi32(g.most, 2) >= run->threads ||
	    (uint32_t)_mm_extract_epi32(g.most, 3) >= run->nodes)
		return take_carefully(run, out, max);
	run->p = p;
	run->last_ns = g.ns;
	return g.count;
}

TARGET static size_t take_by_shapes(struct sample_run *run, const struct run_out *out, size_t max)
{
	pthread_once(&shapes_once, make_shapes);
	return out->raw ? take(run, out, true, max) : take(run, out, false, max);
}

TARGET static size_t numbers_by_shapes(const uint8_t **begin, const uint8_t *end, uint8_t tag,
				       struct three_numbers *out, size_t max)
{
	const uint8_t *p = *begin;
	size_t count = 0, at = 1;

	pthread_once(&shapes_once, make_shapes);
	for (; at && p < end; p += at) {
		uint64_t ends = ends_of_numbers(p, end - p);

		at = 0;
		while (count < max && shape_of(ends, at) != SHAPE_NONE && p[at] == tag) {
			uint64_t last = without_lowest(without_lowest(without_lowest(ends)));

			_mm_storeu_si128((__m128i *)&out[count++],
					 three_numbers(p + at + 1, shape_of(ends, at)));
			at = __builtin_ctzll(last) + 1;
			ends = without_lowest(last);
		}
	}
	*begin = p;
	return count;
}

static bool shapes_work(void)
{
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
	       __builtin_cpu_supports("bmi2");
}

static size_t take_any(struct sample_run *run, const struct run_out *out, size_t max)
{
	return shapes_work() ? take_by_shapes(run, out, max) : take_carefully(run, out, max);
}

size_t run_take_numbers(const uint8_t **p, const uint8_t *end, uint8_t tag,
			struct three_numbers *out, size_t max)
{
	return shapes_work() ? numbers_by_shapes(p, end, tag, out, max) : 0;
}

#else

static size_t take_any(struct sample_run *run, const struct run_out *out, size_t max)
{
	return take_carefully(run, out, max);
}

size_t run_take_numbers(const uint8_t **p __attribute__((unused)),
			const uint8_t *end __attribute__((unused)),
			uint8_t tag __attribute__((unused)),
			struct three_numbers *out __attribute__((unused)),
			size_t max __attribute__((unused)))
{
	return 0;
}

#endif

size_t run_take(struct sample_run *run, struct raw_sample *out, size_t max)
{
	return run->threads ? take_any(run, &(struct run_out){ .raw = out }, max) : 0;
}

size_t run_take_samples(struct sample_run *run, const struct spulse_thread *threads,
			struct spulse_sample *out, size_t max)
{
	const struct run_out to = { .samples = out, .threads = threads };

	return run->threads ? take_any(run, &to, max) : 0;
}

size_t run_skip(struct sample_run *run)
{
	struct raw_sample ignored[256];
	size_t count = 0, more;

	do {
		more = run_take(run, ignored, sizeof(ignored) / sizeof(*ignored));
		count += more;
	} while (more);
	return count;
}
