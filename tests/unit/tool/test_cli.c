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
#include "cli.h"

/* What the example command's options set. */
struct values {
	bool quiet;
	bool loud;
	const char *name;
	uint64_t number;
	uint64_t size;
	int64_t time_ns;
	int choice;
	struct cli_pids pids;
};

static char output[8192], errors[8192];

/* Parses a line of words split at blanks; gives the status and the words that are left. */
static int parse(const char *line, struct values *values, char *left, bool stop_at_argument)
{
	static const char *const choices[] = {"red", "green", NULL};
	static char copy[512];
	const struct cli_option options[] = {
		{'q', "quiet", CLI_FLAG, &values->quiet, NULL, .help = "Be quiet."},
		{0, "no-loud", CLI_FLAG_OFF, &values->loud, NULL, .help = "Not loud."},
		{'o', "output", CLI_STRING, &values->name, "FILE",
		 .help = "Write to FILE, with an explanation that is much too long for one line of "
			 "eighty columns."},
		{'n', "number", CLI_NUMBER, &values->number, "N", .help = "A number.", .minimum = 1,
		 .maximum = 100},
		{0, "size", CLI_SIZE, &values->size, "BYTES", .help = "A size."},
		{'d', "duration", CLI_SECONDS, &values->time_ns, "SECONDS", .help = "A time."},
		{0, "color", CLI_CHOICE, &values->choice, "WHEN", .help = "A word.",
		 .choices = choices},
		{'p', "pid", CLI_CUSTOM, &values->pids, "PID", .help = "Processes.",
		 .parse = cli_parse_pids},
	};
	const struct cli_group groups[] = {CLI_GROUP("Options", options)};
	const struct cli_spec spec = {
		.command = "example",
		.usage = "[OPTION...] FILE",
		.about = "Does nothing.",
		.groups = groups,
		.group_count = 1,
		.minimum_arguments = 1,
		.maximum_arguments = 3,
		.argument_name = "FILE",
		.stop_at_argument = stop_at_argument,
	};
	char *words[32], **argv = words;
	struct capture out, err;
	int argc = 0, status;

	*values = (struct values){.loud = true};
	snprintf(copy, sizeof(copy), "example %s", line);
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
		words[argc++] = word;
	words[argc] = NULL;
	capture_start(&out, STDOUT_FILENO);
	capture_start(&err, STDERR_FILENO);
	status = cli_parse(&spec, &argc, &argv);
	capture_end(&err, errors, sizeof(errors));
	capture_end(&out, output, sizeof(output));
	left[0] = '\0';
	for (int i = 0; status == CLI_GO_ON && i < argc; i++)
		strcat(strcat(left, i ? " " : ""), argv[i]);
	return status;
}

static void good_lines(void **state)
{
	struct values values;
	char left[256];

	(void)state;
	assert_int_equal(parse("a -q b --output=x -n 7 c", &values, left, false), CLI_GO_ON);
	assert_string_equal(left, "a b c");
	assert_true(values.quiet);
	assert_true(values.loud);
	assert_string_equal(values.name, "x");
	assert_int_equal(values.number, 7);

	assert_int_equal(
		parse("-qn100 --no-loud --size 2k -d 1.5 --color green a", &values, left, false),
		CLI_GO_ON);
	assert_true(values.quiet);
	assert_false(values.loud);
	assert_int_equal(values.number, 100);
	assert_int_equal(values.size, 2048);
	assert_int_equal(values.time_ns, 1500000000);
	assert_int_equal(values.choice, 1);

	assert_int_equal(parse("-p 1,2 -p 3,2 -- -q --x", &values, left, false), CLI_GO_ON);
	assert_string_equal(left, "-q --x");
	assert_int_equal(values.pids.count, 3);
	assert_int_equal(values.pids.pids[2], 3);
	assert_false(values.quiet);

	assert_int_equal(parse("- -q", &values, left, false), CLI_GO_ON);
	assert_string_equal(left, "-");
}

static void command_in_a_command(void **state)
{
	struct values values;
	char left[256];

	(void)state;
	assert_int_equal(parse("-q cmd -n", &values, left, true), CLI_GO_ON);
	assert_string_equal(left, "cmd -n");
	assert_int_equal(parse("-q -- cmd --", &values, left, true), CLI_GO_ON);
	assert_string_equal(left, "cmd --");
}

static void wrong_lines(void **state)
{
	static const struct {
		const char *line;
		const char *message;
	} wrong[] = {
		{"", "FILE is missing"},
		{"a b c d", "unexpected argument \"d\""},
		{"a --outptu x", "unknown option --outptu (did you mean --output?)"},
		{"a --zzz", "unknown option --zzz\n"},
		{"a -z", "unknown option -z"},
		{"a -o", "-o needs a value (FILE)"},
		{"a --output", "--output needs a value (FILE)"},
		{"a --output=", "must not be empty"},
		{"a --quiet=yes", "--quiet takes no value"},
		{"a -n 0", "-n 0: must be 1 to 100"},
		{"a -n 101", "must be 1 to 100"},
		{"a -n 7x", "not a whole number"},
		{"a -n -7", "not a whole number"},
		{"a -n 0x7", "not a whole number"},
		{"a -n 18446744073709551616", "not a whole number"},
		{"a --size 1kk", "not a whole number"},
		{"a --size 99999999999G", "not a whole number"},
		{"a -d 0", "number of seconds above 0"},
		{"a -d 1.", "number of seconds above 0"},
		{"a -d .5", "number of seconds above 0"},
		{"a -d 1e9", "number of seconds above 0"},
		{"a -d 99999999999", "number of seconds above 0"},
		{"a --color blue", "must be one of red, green"},
		{"a -p 0", "a process id is 1 to 2147483647"},
		{"a -p 2147483648", "a process id is 1 to 2147483647"},
		{"a -p 1,", "must be process ids"},
		{"a -p ,1", "must be process ids"},
		{"a -p 1;2", "must be process ids"},
	};
	struct values values;
	char left[256];

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(parse(wrong[i].line, &values, left, false), 2);
		if (!strstr(errors, wrong[i].message))
			fail_msg("\"%s\" says: %s", wrong[i].line, errors);
		assert_non_null(strstr(errors, "see \"stackpulse example --help\""));
		assert_string_equal(output, "");
	}
}

static void help(void **state)
{
	struct values values;
	char left[256];

	(void)state;
	assert_int_equal(parse("--help", &values, left, false), 0);
	assert_string_equal(errors, "");
	assert_non_null(strstr(output, "Usage: stackpulse example [OPTION...] FILE\n"));
	assert_non_null(strstr(output, "  -o, --output FILE         Write to FILE, with"));
	for (const char *line = output; *line; line += strcspn(line, "\n") + 1)
		assert_true(strcspn(line, "\n") <= 80);
	/* A command's own -h is not ours. */
	assert_int_equal(parse("cmd -h", &values, left, true), CLI_GO_ON);
}

static void wrapping(void **state)
{
	struct capture capture;
	struct out *out;

	(void)state;
	capture_start(&capture, STDOUT_FILENO);
	out = out_stdout();
	cli_wrap(out, "one\n\ntwo", 0, 0);
	cli_wrap(out, "", 0, 0);
	assert_int_equal(out_close(out, 0), 0);
	capture_end(&capture, output, sizeof(output));
	assert_string_equal(output, "one\n\ntwo\n\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_lines),  cmocka_unit_test(command_in_a_command),
		cmocka_unit_test(wrong_lines), cmocka_unit_test(help),
		cmocka_unit_test(wrapping),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
