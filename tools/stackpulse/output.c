/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output.h"
#include "tool.h"

struct out {
	int fd;
	int error;
	bool terminal;
	bool color;
	/* Name to put in place at the end, and the name until then; NULL for stdout. */
	char *path;
	char *temporary;
	size_t used;
	char buffer[65536];
};

static struct out *out_new(int fd)
{
	struct out *out = calloc(1, sizeof(*out));

	if (!out) {
		tool_message("out of memory");
		exit(TOOL_FAILED);
	}
	out->fd = fd;
	out->terminal = isatty(fd);
	out_set_color(out, OUT_COLOR_AUTO);
	return out;
}

struct out *out_stdout(void)
{
	return out_new(STDOUT_FILENO);
}

struct out *out_stderr(void)
{
	return out_new(STDERR_FILENO);
}

/* Devices, pipes and the like are written in place: they cannot be replaced by a rename. */
static bool written_in_place(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

bool out_would_replace(const char *path, const char *input)
{
	struct stat a, b;

	if (stat(path, &a) < 0 || stat(input, &b) < 0 || !S_ISREG(a.st_mode) ||
	    a.st_dev != b.st_dev || a.st_ino != b.st_ino)
		return false;
	tool_message("cannot write %s: it is what is read", path);
	return true;
}

/* Whoever else may write to the folder must not choose where a file of a known name leads. */
static int open_temporary(const char *path)
{
	unlink(path);
	return open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
}

struct out *out_file(const char *path, const char *input)
{
	char *temporary = NULL, *copy;
	struct out *out;
	int fd;

	if (!strcmp(path, "-"))
		return out_stdout();
	if (out_would_replace(path, input))
		return NULL;
	copy = strdup(path);
	if (!copy ||
	    (!written_in_place(path) && asprintf(&temporary, "%s.part%d", path, getpid()) < 0)) {
		free(copy);
		tool_message("out of memory");
		return NULL;
	}
	fd = temporary ? open_temporary(temporary) : open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0) {
		tool_message("cannot create %s: %s", path, strerror(errno));
		free(temporary);
		free(copy);
		return NULL;
	}
	out = out_new(fd);
	out->path = copy;
	out->temporary = temporary;
	return out;
}

void out_set_color(struct out *out, enum out_color color)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	if (color == OUT_COLOR_AUTO)
		out->color = out->terminal && !(no_color && *no_color) &&
			     !(term && !strcmp(term, "dumb"));
	else
		out->color = color == OUT_COLOR_ALWAYS;
}

bool out_color(const struct out *out)
{
	return out->color;
}

bool out_terminal(const struct out *out)
{
	return out->terminal;
}

unsigned int out_columns(const struct out *out)
{
	struct winsize size;

	if (!out->terminal || ioctl(out->fd, TIOCGWINSZ, &size) < 0)
		return 0;
	return size.ws_col;
}

void out_flush(struct out *out)
{
	size_t done = 0;

	while (done < out->used && !out->error) {
		ssize_t n = write(out->fd, out->buffer + done, out->used - done);

		if (n > 0)
			done += (size_t)n;
		else if (n == 0)
			out->error = EIO;
		else if (errno != EINTR)
			out->error = errno;
	}
	out->used = 0;
}

void out_write(struct out *out, const void *bytes, size_t len)
{
	const char *from = bytes;

	while (len && !out->error) {
		size_t room = sizeof(out->buffer) - out->used;
		size_t part = len < room ? len : room;

		memcpy(out->buffer + out->used, from, part);
		out->used += part;
		from += part;
		len -= part;
		if (out->used == sizeof(out->buffer))
			out_flush(out);
	}
}

void out_puts(struct out *out, const char *text)
{
	out_write(out, text, strlen(text));
}

void out_printf(struct out *out, const char *format, ...)
{
	char small[512], *big;
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(small, sizeof(small), format, args);
	va_end(args);
	if (len < (int)sizeof(small)) {
		out_write(out, small, len > 0 ? (size_t)len : 0);
		return;
	}
	va_start(args, format);
	len = vasprintf(&big, format, args);
	va_end(args);
	if (len < 0) {
		out->error = ENOMEM;
		return;
	}
	out_write(out, big, (size_t)len);
	free(big);
}

static void write_escaped(struct out *out, const char *text, size_t len, enum text_mode mode)
{
	char piece[4 * 256 + 1];

	/* A piece ends at a character's begin, so that escaping sees whole characters. */
	while (len) {
		size_t part = len < 256 ? len : 256;

		while (part < len && part > 252 && ((unsigned char)text[part] & 0xc0) == 0x80)
			part--;
		out_write(out, piece, text_escape(piece, sizeof(piece), text, part, mode));
		text += part;
		len -= part;
	}
}

void out_name(struct out *out, const char *name, size_t len)
{
	write_escaped(out, name, len, out->terminal ? TEXT_NAME_TERMINAL : TEXT_NAME);
}

void out_line(struct out *out, const char *text, size_t len)
{
	write_escaped(out, text, len, out->terminal ? TEXT_TERMINAL : TEXT_LINE);
}

void out_style(struct out *out, const char *sgr)
{
	if (out->color)
		out_printf(out, "\x1b[%sm", sgr ? sgr : "0");
}

bool out_stopped(const struct out *out)
{
	return out->error != 0;
}

bool out_reader_left(const struct out *out)
{
	struct pollfd pollfd = {.fd = out->fd};

	return poll(&pollfd, 1, 0) == 1 && (pollfd.revents & POLLERR);
}

static void out_free(struct out *out)
{
	free(out->path);
	free(out->temporary);
	free(out);
}

static void put_in_place(struct out *out)
{
	if (!out->path)
		return;
	if (close(out->fd) < 0 && !out->error)
		out->error = errno;
	if (!out->temporary)
		return;
	if (!out->error && rename(out->temporary, out->path) < 0)
		out->error = errno;
	if (out->error)
		unlink(out->temporary);
}

int out_close(struct out *out, int status)
{
	out_flush(out);
	put_in_place(out);
	if (out->error && out->error != EPIPE) {
		tool_message("cannot write %s: %s", out->path ? out->path : "to standard output",
			     strerror(out->error));
		status = TOOL_FAILED;
	}
	out_free(out);
	return status;
}

int out_abandon(struct out *out, int status)
{
	if (out->path)
		close(out->fd);
	else
		out_flush(out);
	if (out->temporary)
		unlink(out->temporary);
	out_free(out);
	return status;
}
