/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TOOL_CLI_H
#define TOOL_CLI_H

/*
 * Command lines from tables: one struct describes a command's options, arguments and help, and
 * both the parser and --help work from it. Options and arguments mix freely; "--" ends options.
 */

#include <sys/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output.h"

enum cli_type {
	/* bool: set to true. */
	CLI_FLAG,
	/* bool: set to false. */
	CLI_FLAG_OFF,
	/* const char *: borrowed from argv. */
	CLI_STRING,
	/* uint64_t, decimal, within minimum and maximum. */
	CLI_NUMBER,
	/* uint64_t, decimal with an optional k, M or G (powers of 1024), within the limits. */
	CLI_SIZE,
	/* int64_t nanoseconds from seconds such as "2" or "0.5"; more than 0. */
	CLI_SECONDS,
	/* int: index of the word in choices. */
	CLI_CHOICE,
	/* parse() decides. */
	CLI_CUSTOM,
};

struct cli_option {
	/* 0 = none. */
	char letter;
	const char *name;
	enum cli_type type;
	void *target;
	/* How the help names the value. */
	const char *argument;
	/* One or more sentences; wrapped by the help. */
	const char *help;
	uint64_t minimum;
	uint64_t maximum;
	/* NULL-terminated words of CLI_CHOICE. */
	const char *const *choices;
	/* Returns NULL, or what is wrong with text ("must be ..."). Static storage. */
	const char *(*parse)(void *target, const char *text);
};

struct cli_group {
	const char *title;
	const struct cli_option *options;
	size_t count;
};

struct cli_spec {
	const char *command;
	/* What follows "stackpulse COMMAND" in the usage line. */
	const char *usage;
	/* What the command does, in wrapped paragraphs separated by "\n". */
	const char *about;
	const struct cli_group *groups;
	size_t group_count;
	/* Lines as they are, shown under "Examples:"; may be NULL. */
	const char *examples;
	size_t minimum_arguments;
	size_t maximum_arguments;
	/* What a missing argument is, for "FILE is missing". */
	const char *argument_name;
	/* The first argument ends the options: for a command line in a command line. */
	bool stop_at_argument;
};

#define CLI_GROUP(title_, array) \
	{ \
		.title = title_, .options = array, .count = sizeof(array) / sizeof((array)[0]) \
	}

/* Returned by cli_parse() when the command shall go on. */
enum { CLI_GO_ON = -1 };

/*
 * Parses argv[1] and on. Arguments are moved to the front: *argc_ptr and *argv_ptr then hold
 * them alone. Returns CLI_GO_ON, or the exit status after --help or a usage error.
 */
int cli_parse(const struct cli_spec *spec, int *argc_ptr, char ***argv_ptr);
/* Prints "stackpulse COMMAND: ..." and where help is; returns TOOL_USAGE. */
int cli_usage_error(const struct cli_spec *spec, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Decimal digits only; false for anything else or more than 64 bits. */
bool cli_parse_number(const char *text, uint64_t *value_out);
/* A list "PID[,PID...]" appended to array; NULL or what is wrong. */
struct cli_pids {
	pid_t pids[256];
	size_t count;
};
const char *cli_parse_pids(void *target, const char *text);
/* Writes text wrapped to 80 columns, lines after the first indented. */
void cli_wrap(struct out *out, const char *text, size_t first_column, size_t indent);

/* Words of --color, in the order of enum out_color. */
extern const char *const cli_color_words[];

#endif
