/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TOOL_TOOL_H
#define TOOL_TOOL_H

/*
 * What every command of the tool shares: exit statuses, the table of commands and messages on
 * stderr. The tool uses the public headers only.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stackpulse/stackpulse.h>

enum tool_status {
	TOOL_DONE = 0,
	TOOL_FAILED = 1,
	TOOL_USAGE = 2,
	/* Only of record, whose other statuses are the command's own. */
	TOOL_RECORD_FAILED = 125,
	TOOL_NOT_EXECUTABLE = 126,
	TOOL_NOT_FOUND = 127,
	/* Added to the number of the signal that ended the command. */
	TOOL_SIGNAL_BASE = 128,
};

/* What record writes and the other commands read unless told otherwise. */
#define TOOL_DEFAULT_SPOOL "stackpulse.spool"

struct command {
	const char *name;
	const char *summary;
	/* argv[0] is the command's name. Returns the exit status. */
	int (*run)(int argc, char **argv);
	/* A headline of the list in --help, for the first command of its group. */
	const char *group;
};

int cmd_convert(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_dump(int argc, char **argv);
int cmd_flame(int argc, char **argv);
int cmd_folded(int argc, char **argv);
int cmd_import(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_record(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_resolve(int argc, char **argv);
int cmd_script(int argc, char **argv);
int cmd_symbolize(int argc, char **argv);
int cmd_tail(int argc, char **argv);

/* Prints "stackpulse: ..." and a line end to stderr, control bytes escaped on a terminal. */
void tool_message(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same with an error's message, its causes and what failed while cleaning up. */
void tool_report_error(const struct spulse_error *error);
/* Prints the error and frees it; returns TOOL_FAILED, for "return tool_fail(err)". */
int tool_fail(struct spulse_error *error);
/* Sends the library's warnings to stderr; debug messages too when $STACKPULSE_LOG is "debug". */
void tool_start_logging(void);

#endif
