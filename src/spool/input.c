/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "input.h"

#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

enum { SUM_LANES = 8 };

/* Independent lanes: the sum must cost little beside decoding. */
static uint64_t sum_portable(const uint8_t *p, size_t len)
{
	static const uint64_t factor = 0x9e3779b97f4a7c15u;
	uint64_t lane[SUM_LANES] = { len, 1, 2, 3, 4, 5, 6, 7 };
	uint64_t tail[SUM_LANES] = { 0 };

	for (; len >= sizeof(lane); p += sizeof(lane), len -= sizeof(lane))
#pragma GCC unroll 8
		for (int i = 0; i < SUM_LANES; i++) {
			lane[i] = (lane[i] ^ load_u64(p + 8 * i)) * factor;
			lane[i] ^= lane[i] >> 32;
		}
	memcpy(tail, p, len);
	for (int i = 0; i < SUM_LANES; i++)
		lane[0] = hash_two(lane[0], lane[i] ^ tail[i]);
	return lane[0];
}

#ifdef __x86_64__

/* A round of AES mixes 16 bytes in one step, and never makes two different states equal. */
__attribute__((target("aes"))) static uint64_t sum_aes(const uint8_t *p, size_t len)
{
	__m128i lane[SUM_LANES], mixed;
	uint64_t tail[2 * SUM_LANES] = { 0 }, words[2], sum = len;

	for (int i = 0; i < SUM_LANES; i++)
		lane[i] = _mm_set1_epi32(i);
	for (; len >= sizeof(lane); p += sizeof(lane), len -= sizeof(lane))
#pragma GCC unroll 8
		for (int i = 0; i < SUM_LANES; i++)
			lane[i] = _mm_aesenc_si128(
				lane[i], _mm_loadu_si128((const __m128i *)(p + 16 * i)));
	memcpy(tail, p, len);
	for (int i = 0; i < SUM_LANES; i++) {
		mixed = _mm_aesenc_si128(lane[i], _mm_loadu_si128((const __m128i *)tail + i));
		_mm_storeu_si128((__m128i *)words, mixed);
		sum = hash_two(hash_two(sum, words[0]), words[1]);
	}
	return sum;
}

static uint64_t block_sum(const uint8_t *p, size_t len)
{
	return __builtin_cpu_supports("aes") ? sum_aes(p, len) : sum_portable(p, len);
}

#else

static uint64_t block_sum(const uint8_t *p, size_t len)
{
	return sum_portable(p, len);
}

#endif

static int changed(const struct input *in, struct spulse_error **err)
{
	return err_corrupt(err, in->path, -1, input_end(in),
			   "the file was changed while it was open: its bytes from offset %llu on "
			   "are not the ones that were checked", (unsigned long long)input_end(in));
}

static int sum_block(struct input *in, const uint8_t *bytes, size_t len,
		     struct spulse_error **err)
{
	size_t index = input_end(in) / INPUT_BLOCK;

	if (in->record && !vec_push(&in->record->sums, block_sum(bytes, len)))
		return err_no_memory(err);
	if (in->check && (index >= in->check->sums.len ||
			  in->check->sums.data[index] != block_sum(bytes, len)))
		return changed(in, err);
	return 0;
}

static int read_block(struct input *in, struct spulse_error **err)
{
	size_t want = MIN((uint64_t)INPUT_BLOCK, in->limit - input_end(in));
	ssize_t n = pread_full(in->fd, in->buf + in->len, want, input_end(in));
	int r;

	if (n < 0)
		return err_io(err, -n, in->path, "cannot read at offset %llu",
			      (unsigned long long)input_end(in));
	if ((size_t)n < want)
		return err_corrupt(err, in->path, -1, input_end(in) + n,
				   "the file became shorter while it was open: expected %llu "
				   "bytes, found %llu", (unsigned long long)in->limit,
				   (unsigned long long)(input_end(in) + n));
	r = sum_block(in, in->buf + in->len, want, err);
	if (r < 0)
		return r;
	in->len += want;
	return 0;
}

static int make_room(struct input *in, size_t more, struct spulse_error **err)
{
	size_t need = in->len + more;
	uint8_t *buf;

	if (need <= in->cap)
		return 0;
	buf = realloc(in->buf, need + RUN_SLACK);
	if (!buf)
		return err_no_memory(err);
	memset(buf + need, 0, RUN_SLACK);
	in->buf = buf;
	in->cap = need;
	return 0;
}

int input_more(struct input *in, size_t drop, struct spulse_error **err)
{
	uint64_t want, end;
	int r;

	if (drop) {
		in->len -= drop;
		in->base += drop;
		memmove(in->buf, in->buf + drop, in->len);
	}
	/* Whole blocks; a window that doubles, so that a huge record is not parsed too often. */
	want = ((uint64_t)in->len / INPUT_BLOCK + 1) * INPUT_BLOCK;
	want = MIN(want, in->limit - input_end(in));
	r = make_room(in, want, err);
	for (end = input_end(in) + want; r == 0 && input_end(in) < end;)
		r = read_block(in, err);
	return r;
}

size_t input_seek(struct input *in, uint64_t offset)
{
	in->len = 0;
	in->base = offset - offset % INPUT_BLOCK;
	return offset - in->base;
}

void input_release(struct input *in)
{
	free(in->buf);
	in->buf = NULL;
	in->len = in->cap = 0;
}

int input_open_file(const char *path, int *fd_out, uint64_t *size_out, struct spulse_error **err)
{
	/* Not to hang on a pipe without a writer: it is refused below. */
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return err_io(err, errno, path, "cannot open the spool");
	if (fstat(fd, &st) < 0)
		return err_io(err, errno, path, "cannot examine the spool");
	if (S_ISDIR(st.st_mode))
		return err_io(err, EISDIR, path, "cannot read the spool");
	if (!S_ISREG(st.st_mode))
		return err_file(err, SPULSE_ERROR_IO, 0, path, "a spool must be a regular file");
	*size_out = st.st_size;
	*fd_out = take_fd(&fd);
	return 0;
}

void block_sums_release(struct block_sums *sums)
{
	vec_free(&sums->sums);
}
