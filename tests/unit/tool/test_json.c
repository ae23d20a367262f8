/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "json.h"

static char written[4096];

static void finish(struct json *json, struct capture *capture)
{
	assert_int_equal(out_close(json->out, 0), 0);
	capture_end(capture, written, sizeof(written));
}

static void start(struct json *json, struct capture *capture)
{
	capture_start(capture, STDOUT_FILENO);
	json_init(json, out_stdout());
}

static void structure(void **state)
{
	struct capture capture;
	struct json json;

	(void)state;
	start(&json, &capture);
	json_begin_object(&json);
	json_field_uint(&json, "a", UINT64_MAX);
	json_field_int(&json, "b", INT64_MIN);
	json_key(&json, "c");
	json_begin_array(&json);
	json_begin_object(&json);
	json_end_object(&json);
	json_begin_array(&json);
	json_end_array(&json);
	json_null(&json);
	json_bool(&json, true);
	json_end_array(&json);
	json_field_hex(&json, "d", 0xabcdef0123);
	json_field_bool(&json, "e", false);
	json_field_text(&json, "f", NULL);
	json_key(&json, "g");
	json_number(&json, 1.25, 2);
	json_end_object(&json);
	json_end_line(&json);
	json_begin_array(&json);
	json_end_array(&json);
	json_end_line(&json);
	finish(&json, &capture);
	assert_string_equal(written, "{\"a\":18446744073709551615,\"b\":-9223372036854775808,"
				     "\"c\":[{},[],null,true],\"d\":\"0xabcdef0123\",\"e\":false,"
				     "\"f\":null,\"g\":1.25}\n[]\n");
}

static void expect_text(const char *text, size_t len, bool html, const char *wanted)
{
	struct capture capture;
	struct json json;

	start(&json, &capture);
	json.html_safe = html;
	json_string(&json, text, len);
	finish(&json, &capture);
	assert_string_equal(written, wanted);
}

static void strings(void **state)
{
	(void)state;
	expect_text("plain", 5, false, "\"plain\"");
	expect_text("", 0, false, "\"\"");
	expect_text("\"\\/", 3, false, "\"\\\"\\\\/\"");
	expect_text("\b\t\n\f\r\v\x1b\x7f", 8, false, "\"\\b\\t\\n\\f\\r\\u000b\\u001b\\u007f\"");
	expect_text("a\0b", 3, false, "\"a\\u0000b\"");
	/* What reorders or breaks lines is escaped, other text stays. */
	expect_text("\xe2\x80\xa8\xc2\x85\xc3\xa4", 7, false, "\"\\u2028\\u0085\xc3\xa4\"");
	expect_text("\xff\xc3(", 3, false, "\"\xef\xbf\xbd\xef\xbf\xbd(\"");
	expect_text("<>&", 3, false, "\"<>&\"");
	expect_text("</script>&", 10, true, "\"\\u003c/script\\u003e\\u0026\"");
}

static void bytes_that_are_no_text(void **state)
{
	struct capture capture;
	struct json json;

	(void)state;
	start(&json, &capture);
	json_begin_object(&json);
	json_field_bytes(&json, "path", "/a", 2);
	json_field_bytes(&json, "other", "/\xff", 2);
	json_end_object(&json);
	finish(&json, &capture);
	assert_string_equal(written, "{\"path\":\"/a\",\"other\":\"/\xef\xbf\xbd\","
				     "\"other_hex\":\"2fff\"}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(structure),
		cmocka_unit_test(strings),
		cmocka_unit_test(bytes_that_are_no_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
