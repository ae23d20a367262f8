/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "cli_value.h"
#include "tool.h"

const char *const cli_color_words[] = {"auto", "always", "never", NULL};

int cli_usage_error(const struct cli_spec *spec, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	tool_message("%s: %s", spec->command, text);
	tool_message("see \"stackpulse %s --help\"", spec->command);
	return TOOL_USAGE;
}

static const struct cli_option *find_long(const struct cli_spec *spec, const char *name, size_t len)
{
	for (size_t g = 0; g < spec->group_count; g++)
		for (size_t i = 0; i < spec->groups[g].count; i++) {
			const struct cli_option *option = &spec->groups[g].options[i];

			if (option->name && strlen(option->name) == len &&
			    !memcmp(option->name, name, len))
				return option;
		}
	return NULL;
}

static const struct cli_option *find_short(const struct cli_spec *spec, char letter)
{
	for (size_t g = 0; g < spec->group_count; g++)
		for (size_t i = 0; i < spec->groups[g].count; i++)
			if (spec->groups[g].options[i].letter == letter)
				return &spec->groups[g].options[i];
	return NULL;
}

static int unknown_option(const struct cli_spec *spec, const char *name)
{
	const char *names[64], *guess;
	size_t count = 0;

	for (size_t g = 0; g < spec->group_count; g++)
		for (size_t i = 0; i < spec->groups[g].count && count < 64; i++)
			if (spec->groups[g].options[i].name)
				names[count++] = spec->groups[g].options[i].name;
	guess = text_closest(name, names, count);
	if (guess)
		return cli_usage_error(spec, "unknown option --%s (did you mean --%s?)", name,
				       guess);
	return cli_usage_error(spec, "unknown option --%s", name);
}

static int set_option(const struct cli_spec *spec, const struct cli_option *option,
		      const char *shown, const char *text)
{
	char why[160];

	if (cli_value_set(option, text, why, sizeof(why)))
		return CLI_GO_ON;
	return cli_usage_error(spec, "%s %s: %s", shown, text, why);
}

static bool takes_value(const struct cli_option *option)
{
	return option->type != CLI_FLAG && option->type != CLI_FLAG_OFF;
}

static int parse_long(const struct cli_spec *spec, char ***next, char **end)
{
	char *word = *(*next)++, *equals = strchr(word, '=');
	size_t len = equals ? (size_t)(equals - word) - 2 : strlen(word) - 2;
	const struct cli_option *option = find_long(spec, word + 2, len);
	char shown[80];

	snprintf(shown, sizeof(shown), "--%.*s", (int)len, word + 2);
	if (!option)
		return unknown_option(spec, shown + 2);
	if (!takes_value(option)) {
		if (equals)
			return cli_usage_error(spec, "%s takes no value", shown);
		return set_option(spec, option, shown, "");
	}
	if (equals)
		return set_option(spec, option, shown, equals + 1);
	if (*next == end)
		return cli_usage_error(spec, "%s needs a value (%s)", shown, option->argument);
	return set_option(spec, option, shown, *(*next)++);
}

/* A word such as "-q", "-F99", "-F 99" or "-qF99". */
static int parse_short(const struct cli_spec *spec, char ***next, char **end)
{
	char *word = *(*next)++;

	for (char *letter = word + 1; *letter; letter++) {
		const struct cli_option *option = find_short(spec, *letter);
		char shown[3] = {'-', *letter, 0};
		int status;

		if (!option)
			return cli_usage_error(spec, "unknown option %s", shown);
		if (takes_value(option)) {
			if (letter[1])
				return set_option(spec, option, shown, letter + 1);
			if (*next == end)
				return cli_usage_error(spec, "%s needs a value (%s)", shown,
						       option->argument);
			return set_option(spec, option, shown, *(*next)++);
		}
		status = set_option(spec, option, shown, "");
		if (status != CLI_GO_ON)
			return status;
	}
	return CLI_GO_ON;
}

static int check_arguments(const struct cli_spec *spec, int argc, char **argv)
{
	if ((size_t)argc < spec->minimum_arguments)
		return cli_usage_error(spec, "%s is missing", spec->argument_name);
	if ((size_t)argc > spec->maximum_arguments)
		return cli_usage_error(spec, "unexpected argument \"%s\"",
				       argv[spec->maximum_arguments]);
	return CLI_GO_ON;
}

static void print_option(struct out *out, const struct cli_option *option)
{
	char left[64];
	int len = snprintf(left, sizeof(left), "  %c%c%s --%s%s%s", option->letter ? '-' : ' ',
			   option->letter ? option->letter : ' ', option->letter ? "," : " ",
			   option->name, option->argument ? " " : "",
			   option->argument ? option->argument : "");

	out_puts(out, left);
	if (len > 26) {
		out_puts(out, "\n");
		len = 0;
	}
	out_printf(out, "%*s", 28 - len, "");
	cli_wrap(out, option->help, 28, 28);
}

static int print_help(const struct cli_spec *spec)
{
	struct out *out = out_stdout();

	out_printf(out, "Usage: stackpulse %s %s\n\n", spec->command, spec->usage);
	cli_wrap(out, spec->about, 0, 0);
	for (size_t g = 0; g < spec->group_count; g++) {
		out_printf(out, "\n%s:\n", spec->groups[g].title);
		for (size_t i = 0; i < spec->groups[g].count; i++)
			print_option(out, &spec->groups[g].options[i]);
	}
	out_printf(out, "\n  -h, --help                Show this text.\n");
	if (spec->examples)
		out_printf(out, "\nExamples:\n%s", spec->examples);
	return out_close(out, TOOL_DONE);
}

int cli_parse(const struct cli_spec *spec, int *argc_ptr, char ***argv_ptr)
{
	char **argv = *argv_ptr, **next = argv + 1, **end = argv + *argc_ptr;
	int count = 0;

	while (next < end) {
		int status;

		if (!strcmp(*next, "--")) {
			next++;
			break;
		}
		if (!strcmp(*next, "--help") || !strcmp(*next, "-h"))
			return print_help(spec);
		if ((*next)[0] != '-' || !(*next)[1]) {
			if (spec->stop_at_argument)
				break;
			argv[1 + count++] = *next++;
			continue;
		}
		status = (*next)[1] == '-' ? parse_long(spec, &next, end)
					   : parse_short(spec, &next, end);
		if (status != CLI_GO_ON)
			return status;
	}
	while (next < end)
		argv[1 + count++] = *next++;
	argv[1 + count] = NULL;
	*argc_ptr = count;
	*argv_ptr = argv + 1;
	return check_arguments(spec, count, argv + 1);
}

void cli_wrap(struct out *out, const char *text, size_t first_column, size_t indent)
{
	enum { WIDTH = 80 };
	size_t column = first_column;
	bool at_start = true;

	while (*text) {
		size_t word = strcspn(text, " \n");

		if (!at_start && column + 1 + word > WIDTH) {
			out_printf(out, "\n%*s", (int)indent, "");
			column = indent;
			at_start = true;
		}
		if (!at_start) {
			out_puts(out, " ");
			column++;
		}
		out_write(out, text, word);
		column += word;
		at_start = false;
		text += word;
		if (*text == '\n') {
			out_printf(out, "\n%*s", text[1] == '\n' ? 0 : (int)indent, "");
			column = indent;
			at_start = true;
		}
		text += *text != '\0';
	}
	out_puts(out, "\n");
}
