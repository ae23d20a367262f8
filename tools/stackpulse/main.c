/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "tool.h"

/* In the order of the list in --help. The build says which commands it has. */
static const struct command commands[] = {
#include "commands.inc"
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static int print_help(void)
{
	struct out *out = out_stdout();

	out_puts(out,
		 "StackPulse samples the call stacks of running programs and shows where their "
		 "time goes.\n\n"
		 "  stackpulse record -- ./app        record a program from its first instruction\n"
		 "  stackpulse record -p PID -d 10    record a running process for ten seconds\n"
		 "  stackpulse report                 show what was recorded\n"
		 "  stackpulse flame -o flame.html    the same as an interactive flame graph\n\n"
		 "Usage: stackpulse COMMAND [OPTION...] [ARGUMENT...]\n");
	for (size_t i = 0; i < COMMAND_COUNT; i++) {
		if (commands[i].group)
			out_printf(out, "\n%s:\n", commands[i].group);
		out_printf(out, "  %-12s %s\n", commands[i].name, commands[i].summary);
	}
	out_puts(out,
		 "\n\"stackpulse COMMAND --help\" explains a command. \"stackpulse --version\" "
		 "shows the version.\n"
		 "Exit status: 0 done, 1 failed, 2 wrong usage; record has its own rules.\n"
		 "Environment: NO_COLOR switches colours off, STACKPULSE_LOG=debug shows how names "
		 "are found.\n");
	return out_close(out, TOOL_DONE);
}

static int print_version(void)
{
	struct out *out = out_stdout();

	out_printf(out, "stackpulse %s\n", spulse_version());
	return out_close(out, TOOL_DONE);
}

static int unknown_command(const char *name)
{
	const char *names[COMMAND_COUNT], *guess;

	for (size_t i = 0; i < COMMAND_COUNT; i++)
		names[i] = commands[i].name;
	guess = text_closest(name, names, COMMAND_COUNT);
	if (guess)
		tool_message("unknown command \"%s\" (did you mean \"%s\"?)", name, guess);
	else
		tool_message("unknown command \"%s\"", name);
	tool_message("see \"stackpulse --help\"");
	return TOOL_USAGE;
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

/*
 * A standard descriptor that was closed before us would be the next file's: a message would be
 * written into a recording. What stands in refuses reading and writing, and a recorded command does
 * not inherit it.
 */
static void fill_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)open("/", O_PATH | O_CLOEXEC);
}

int main(int argc, char **argv)
{
	const struct command *command;

	fill_standard_descriptors();

	/* A reader that goes away ends our output, not a recording: see output.h. */
	signal(SIGPIPE, SIG_IGN);
	/* A file that may not grow further is an error like any other of a write. */
	signal(SIGXFSZ, SIG_IGN);
	if (argc < 2) {
		tool_message("a command is missing");
		tool_message("see \"stackpulse --help\"");
		return TOOL_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return print_help();
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))
		return print_version();
	if (!strcmp(argv[1], "help")) {
		static char help[] = "--help";

		if (argc < 3)
			return print_help();
		command = find_command(argv[2]);
		return command ? command->run(2, (char *[]){argv[2], help, NULL})
			       : unknown_command(argv[2]);
	}
	command = find_command(argv[1]);
	if (!command)
		return unknown_command(argv[1]);
	tool_start_logging();
	return command->run(argc - 1, argv + 1);
}
