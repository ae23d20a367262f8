/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "json.h"
#include "text.h"

void json_init(struct json *json, struct out *out)
{
	*json = (struct json){.out = out};
}

static void before_value(struct json *json)
{
	if (json->after_key) {
		json->after_key = false;
		return;
	}
	if (json->filled[json->depth])
		out_puts(json->out, ",");
	json->filled[json->depth] = true;
}

static void begin(struct json *json, const char *bracket)
{
	before_value(json);
	assert(json->depth + 1 < JSON_DEPTH);
	json->filled[++json->depth] = false;
	out_puts(json->out, bracket);
}

static void end(struct json *json, const char *bracket)
{
	assert(json->depth && !json->after_key);
	json->depth--;
	out_puts(json->out, bracket);
}

void json_begin_object(struct json *json)
{
	begin(json, "{");
}

void json_end_object(struct json *json)
{
	end(json, "}");
}

void json_begin_array(struct json *json)
{
	begin(json, "[");
}

void json_end_array(struct json *json)
{
	end(json, "]");
}

static void write_char(struct json *json, const char *text, size_t step, uint32_t code_point)
{
	static const char letters[] = "btn\0fr";

	if (code_point == '"' || code_point == '\\') {
		out_printf(json->out, "\\%c", (int)code_point);
	} else if (code_point >= 8 && code_point <= 13 && letters[code_point - 8]) {
		out_printf(json->out, "\\%c", letters[code_point - 8]);
	} else if (text_is_control(code_point) ||
		   (json->html_safe &&
		    (code_point == '<' || code_point == '>' || code_point == '&'))) {
		out_printf(json->out, "\\u%04" PRIx32, code_point);
	} else {
		out_write(json->out, text, step);
	}
}

static bool is_plain(const struct json *json, unsigned char byte)
{
	if (byte < 0x20 || byte >= 0x7f || byte == '"' || byte == '\\')
		return false;
	return !json->html_safe || (byte != '<' && byte != '>' && byte != '&');
}

static void write_string(struct json *json, const char *text, size_t len)
{
	out_puts(json->out, "\"");
	while (len) {
		uint32_t code_point = 0;
		size_t step = 0;

		while (step < len && is_plain(json, (unsigned char)text[step]))
			step++;
		if (step) {
			out_write(json->out, text, step);
		} else {
			step = text_utf8_length(text, len, &code_point);
			if (step)
				write_char(json, text, step, code_point);
			else
				out_puts(json->out, "\xef\xbf\xbd");
			step = step ? step : 1;
		}
		text += step;
		len -= step;
	}
	out_puts(json->out, "\"");
}

void json_key(struct json *json, const char *key)
{
	assert(!json->after_key);
	before_value(json);
	write_string(json, key, strlen(key));
	out_puts(json->out, ":");
	json->after_key = true;
}

void json_string(struct json *json, const char *text, size_t len)
{
	before_value(json);
	write_string(json, text, len);
}

void json_text(struct json *json, const char *text)
{
	if (text)
		json_string(json, text, strlen(text));
	else
		json_null(json);
}

void json_uint(struct json *json, uint64_t value)
{
	before_value(json);
	out_printf(json->out, "%" PRIu64, value);
}

void json_int(struct json *json, int64_t value)
{
	before_value(json);
	out_printf(json->out, "%" PRId64, value);
}

void json_hex(struct json *json, uint64_t value)
{
	before_value(json);
	out_printf(json->out, "\"0x%" PRIx64 "\"", value);
}

void json_hex_bytes(struct json *json, const char *bytes, size_t len)
{
	before_value(json);
	out_puts(json->out, "\"");
	for (size_t i = 0; i < len; i++)
		out_printf(json->out, "%02x", (unsigned char)bytes[i]);
	out_puts(json->out, "\"");
}

void json_bool(struct json *json, bool value)
{
	before_value(json);
	out_puts(json->out, value ? "true" : "false");
}

void json_null(struct json *json)
{
	before_value(json);
	out_puts(json->out, "null");
}

void json_number(struct json *json, double value, int decimals)
{
	before_value(json);
	out_printf(json->out, "%.*f", decimals, value);
}

void json_end_line(struct json *json)
{
	assert(!json->depth && !json->after_key);
	json->filled[0] = false;
	out_puts(json->out, "\n");
}

void json_field_text(struct json *json, const char *key, const char *text)
{
	json_key(json, key);
	json_text(json, text);
}

void json_field_string(struct json *json, const char *key, const char *text, size_t len)
{
	json_key(json, key);
	json_string(json, text, len);
}

void json_field_bytes(struct json *json, const char *key, const char *bytes, size_t len)
{
	char hex_key[64];

	json_field_string(json, key, bytes, len);
	if (text_is_utf8(bytes, len))
		return;
	snprintf(hex_key, sizeof(hex_key), "%s_hex", key);
	json_key(json, hex_key);
	json_hex_bytes(json, bytes, len);
}

void json_field_uint(struct json *json, const char *key, uint64_t value)
{
	json_key(json, key);
	json_uint(json, value);
}

void json_field_int(struct json *json, const char *key, int64_t value)
{
	json_key(json, key);
	json_int(json, value);
}

void json_field_hex(struct json *json, const char *key, uint64_t value)
{
	json_key(json, key);
	json_hex(json, value);
}

void json_field_bool(struct json *json, const char *key, bool value)
{
	json_key(json, key);
	json_bool(json, value);
}
