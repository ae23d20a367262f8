/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text.h"
#include "tool.h"

/* One write per line, so that lines of several processes do not mix. */
static void print_line(const char *prefix, const char *text)
{
	char line[8192];
	size_t used = (size_t)snprintf(line, sizeof(line), "stackpulse: %s", prefix);

	used += text_escape(line + used, sizeof(line) - used - 1, text, strlen(text),
			    isatty(STDERR_FILENO) ? TEXT_TERMINAL : TEXT_LINE);
	line[used] = '\n';
	fwrite(line, 1, used + 1, stderr);
}

void tool_message(const char *format, ...)
{
	char text[4096];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	print_line("", text);
}

void tool_report_error(const struct spulse_error *error)
{
	const struct spulse_error *cause, *cleanup;

	if (!error) {
		print_line("", "out of memory");
		return;
	}
	print_line("", spulse_error_message(error));
	for (cause = spulse_error_cause(error); cause; cause = spulse_error_cause(cause))
		print_line("  because: ", spulse_error_message(cause));
	cleanup = spulse_error_cleanup(error);
	if (cleanup)
		print_line("  and while cleaning up: ", spulse_error_message(cleanup));
}

static bool written_by_perf(const char *path)
{
	FILE *file = fopen(path, "re");
	char magic[8];
	bool is = file && fread(magic, sizeof(magic), 1, file) == 1 &&
		  !memcmp(magic, "PERFILE2", sizeof(magic));

	if (file)
		fclose(file);
	return is;
}

/* What to do about mistakes that are made at first. */
static void advise(const struct spulse_error *error)
{
	const char *path = error ? spulse_error_path(error) : NULL;

	if (!path)
		return;
	if (spulse_error_errno(error) == ENOENT && !strcmp(path, TOOL_DEFAULT_SPOOL))
		tool_message("\"stackpulse record -- CMD\" makes it; a recording of another name "
			     "is given as FILE");
	if (spulse_error_kind(error) == SPULSE_ERROR_CORRUPT_SPOOL && written_by_perf(path))
		tool_message("\"stackpulse import %s\" makes a recording of what perf wrote", path);
}

int tool_fail(struct spulse_error *error)
{
	tool_report_error(error);
	advise(error);
	spulse_error_free(error);
	return TOOL_FAILED;
}

static void log_line(void *data, enum spulse_log_level level, const char *message)
{
	(void)data;
	print_line(level == SPULSE_LOG_WARNING ? "warning: " : "debug: ", message);
}

void tool_start_logging(void)
{
	const char *wanted = getenv("STACKPULSE_LOG");
	enum spulse_log_level level = SPULSE_LOG_WARNING;

	if (wanted && !strcmp(wanted, "debug"))
		level = SPULSE_LOG_DEBUG;
	else if (wanted && !strcmp(wanted, "off"))
		return;
	spulse_log_set(log_line, NULL, level);
}
