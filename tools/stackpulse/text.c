/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "text.h"

size_t text_utf8_length(const char *text, size_t len, uint32_t *code_point_out)
{
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *bytes = (const unsigned char *)text;
	uint32_t value;
	size_t need;

	if (!len)
		return 0;
	if (bytes[0] < 0x80) {
		*code_point_out = bytes[0];
		return 1;
	}
	need = bytes[0] >= 0xf0 ? 4 : bytes[0] >= 0xe0 ? 3 : 2;
	if (bytes[0] < 0xc2 || bytes[0] > 0xf4 || need > len)
		return 0;
	value = bytes[0] & (0x7fU >> need);
	for (size_t i = 1; i < need; i++) {
		if ((bytes[i] & 0xc0) != 0x80)
			return 0;
		value = value << 6 | (bytes[i] & 0x3f);
	}
	/* Overlong forms, surrogates and what lies beyond Unicode. */
	if (value < smallest[need] || (value >= 0xd800 && value < 0xe000) || value > 0x10ffff)
		return 0;
	*code_point_out = value;
	return need;
}

bool text_is_utf8(const char *text, size_t len)
{
	while (len) {
		uint32_t code_point;
		size_t step = text_utf8_length(text, len, &code_point);

		if (!step)
			return false;
		text += step;
		len -= step;
	}
	return true;
}

bool text_is_control(uint32_t code_point)
{
	return code_point < 0x20 || (code_point >= 0x7f && code_point < 0xa0) ||
	       (code_point >= 0x200e && code_point <= 0x200f) ||
	       (code_point >= 0x2028 && code_point <= 0x202e) ||
	       (code_point >= 0x2066 && code_point <= 0x2069) || code_point == 0xfeff;
}

static bool escaped_in(uint32_t code_point, enum text_mode mode)
{
	if (code_point == '\n' || code_point == '\r')
		return true;
	if (mode <= TEXT_NAME_TERMINAL && (code_point == '\\' || code_point == ';'))
		return true;
	return (mode == TEXT_NAME_TERMINAL || mode == TEXT_TERMINAL) && text_is_control(code_point);
}

static bool raw_bytes_pass(enum text_mode mode)
{
	return mode == TEXT_NAME || mode == TEXT_LINE;
}

/* FNV-1a */
uint64_t text_hash(const char *text, size_t len)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3;
	return hash;
}

size_t text_escape(char *buf, size_t size, const char *text, size_t len, enum text_mode mode)
{
	static const char digits[] = "0123456789abcdef";
	size_t used = 0;

	if (!size)
		return 0;
	while (len) {
		uint32_t code_point = 0;
		size_t step = text_utf8_length(text, len, &code_point);
		bool escape = step ? escaped_in(code_point, mode) : !raw_bytes_pass(mode);

		if (!step)
			step = 1;
		if (used + (escape ? 4 * step : step) >= size)
			break;
		for (size_t i = 0; i < step; i++) {
			unsigned char byte = (unsigned char)text[i];

			if (escape) {
				memcpy(buf + used, "\\x", 2);
				buf[used + 2] = digits[byte >> 4];
				buf[used + 3] = digits[byte & 15];
				used += 4;
			} else {
				buf[used++] = text[i];
			}
		}
		text += step;
		len -= step;
	}
	buf[used] = '\0';
	return used;
}

char *text_count(char *buf, uint64_t value)
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%" PRIu64, value);
	char *out = buf;

	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			*out++ = ',';
		*out++ = digits[i];
	}
	*out = '\0';
	return buf;
}

char *text_bytes(char *buf, uint64_t value)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double scaled = (double)value;
	size_t unit = 0;

	while (scaled >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		scaled /= 1024;
		unit++;
	}
	snprintf(buf, 16, unit ? "%.1f %s" : "%.0f %s", scaled, units[unit]);
	return buf;
}

char *text_duration(char *buf, uint64_t ns)
{
	uint64_t seconds = ns / 1000000000;

	if (ns < 1000000)
		snprintf(buf, 32, "%.0f us", (double)ns / 1e3);
	else if (seconds < 1)
		snprintf(buf, 32, "%.0f ms", (double)ns / 1e6);
	else if (seconds < 60)
		snprintf(buf, 32, "%.1f s", (double)ns / 1e9);
	else if (seconds < 3600)
		snprintf(buf, 32, "%d min %02d s", (int)(seconds / 60), (int)(seconds % 60));
	else
		snprintf(buf, 32, "%" PRIu64 " h %02d min", seconds / 3600,
			 (int)(seconds % 3600 / 60));
	return buf;
}

const char *text_basename(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* Edit distance with exchange of neighbours, for short words; far ones give a large number. */
static size_t distance(const char *a, const char *b)
{
	enum { MOST = 32 };
	size_t rows[3][MOST + 1];
	size_t a_len = strlen(a), b_len = strlen(b);

	if (a_len > MOST || b_len > MOST)
		return MOST;
	for (size_t j = 0; j <= b_len; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		size_t *row = rows[i % 3], *above = rows[(i + 2) % 3],
		       *two_above = rows[(i + 1) % 3];

		row[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			size_t best = above[j - 1] + (a[i - 1] != b[j - 1]);

			if (above[j] + 1 < best)
				best = above[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    two_above[j - 2] + 1 < best)
				best = two_above[j - 2] + 1;
			row[j] = best;
		}
	}
	return rows[a_len % 3][b_len];
}

const char *text_closest(const char *text, const char *const *names, size_t count)
{
	const char *best = NULL;
	size_t best_distance = strlen(text) / 3 + 1;

	for (size_t i = 0; i < count; i++) {
		size_t d = distance(text, names[i]);

		/* A beginning of the name is a good guess, too. */
		if (strlen(text) >= 3 && !strncmp(text, names[i], strlen(text)))
			d = d ? 1 : 0;
		if (d <= best_distance && (!best || d < best_distance)) {
			best = names[i];
			best_distance = d;
		}
	}
	return best;
}
