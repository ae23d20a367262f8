/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json.h"
#include "mem.h"
#include "symopts.h"
#include "tool.h"

/* Names of addresses of one ELF file, in the layout that llvm-symbolizer made common. */

struct lookup {
	struct spulse_symbolizer *symbolizer;
	struct out *out;
	struct json json;
	bool as_json;
	bool no_inline;
	uint64_t *addresses;
	size_t count, cap;
};

enum { BATCH = 65536, BLOCK = 65536 };

/* Hexadecimal with or without 0x, as every such tool reads addresses. */
static bool parse_address(const char *text, size_t len, uint64_t *address)
{
	uint64_t value = 0;

	if (len > 2 && text[0] == '0' && (text[1] | 0x20) == 'x') {
		text += 2;
		len -= 2;
	}
	if (!len || len > 16)
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = text[i] | 0x20;

		if (text[i] >= '0' && text[i] <= '9')
			value = value << 4 | (uint64_t)(text[i] - '0');
		else if (c >= 'a' && c <= 'f')
			value = value << 4 | (uint64_t)(c - 'a' + 10);
		else
			return false;
	}
	*address = value;
	return true;
}

static bool is_known(const struct spulse_resolved_frame *frame)
{
	return spulse_resolved_frame_origin(frame) != SPULSE_ORIGIN_ADDRESS_ONLY;
}

static void print_text(struct lookup *lookup, const struct spulse_resolved_frame *frame)
{
	int64_t line = spulse_resolved_frame_line(frame);
	int64_t column = spulse_resolved_frame_column(frame);
	const char *file = spulse_resolved_frame_file(frame);
	const char *suffix = spulse_resolved_frame_suffix(frame);

	if (!is_known(frame)) {
		out_puts(lookup->out, "??\n??:0:0\n");
		return;
	}
	out_line(lookup->out, spulse_resolved_frame_name(frame),
		 spulse_resolved_frame_name_len(frame));
	out_line(lookup->out, suffix, strlen(suffix));
	out_puts(lookup->out, "\n");
	if (file)
		out_line(lookup->out, file, strlen(file));
	else
		out_puts(lookup->out, "??");
	out_printf(lookup->out, ":%" PRId64 ":%" PRId64 "\n", line < 0 ? 0 : line,
		   column < 0 ? 0 : column);
}

static void json_known(struct json *json, const char *key, int64_t value)
{
	if (value >= 0)
		json_field_int(json, key, value);
}

static void print_json(struct lookup *lookup, const struct spulse_resolved_frame *frame)
{
	struct json *json = &lookup->json;
	const char *file = spulse_resolved_frame_file(frame);
	const char *suffix = spulse_resolved_frame_suffix(frame);

	if (!is_known(frame))
		return;
	json_begin_object(json);
	json_field_string(json, "name", spulse_resolved_frame_name(frame),
			  spulse_resolved_frame_name_len(frame));
	if (suffix[0])
		json_field_text(json, "suffix", suffix);
	if (file)
		json_field_bytes(json, "file", file, strlen(file));
	json_known(json, "line", spulse_resolved_frame_line(frame));
	json_known(json, "column", spulse_resolved_frame_column(frame));
	json_known(json, "function_line", spulse_resolved_frame_function_start_line(frame));
	json_field_hex(json, "offset", spulse_resolved_frame_offset(frame));
	json_field_bool(json, "inlined", spulse_resolved_frame_inline_depth(frame) > 0);
	json_end_object(json);
}

/* Frames [from, to) belong to one address. */
static void print_address(struct lookup *lookup, uint64_t address,
			  const struct spulse_resolved *resolved, size_t from, size_t to)
{
	if (lookup->no_inline)
		from = to - 1;
	if (!lookup->as_json) {
		for (size_t i = from; i < to; i++)
			print_text(lookup, spulse_resolved_at(resolved, i));
		out_puts(lookup->out, "\n");
		return;
	}
	json_begin_object(&lookup->json);
	json_field_hex(&lookup->json, "address", address);
	json_key(&lookup->json, "frames");
	json_begin_array(&lookup->json);
	for (size_t i = from; i < to; i++)
		print_json(lookup, spulse_resolved_at(resolved, i));
	json_end_array(&lookup->json);
	json_end_object(&lookup->json);
	json_end_line(&lookup->json);
}

/* Resolves and prints what was collected. */
static int flush_batch(struct lookup *lookup, struct spulse_error **err)
{
	const struct spulse_resolved *resolved;
	size_t from = 0, n = 0;
	int r;

	if (!lookup->count)
		return 0;
	r = spulse_symbolizer_resolve_addresses(lookup->symbolizer, lookup->addresses,
						lookup->count, &resolved, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < spulse_resolved_count(resolved) && n < lookup->count; i++) {
		if (spulse_resolved_frame_inline_depth(spulse_resolved_at(resolved, i)))
			continue;
		print_address(lookup, lookup->addresses[n++], resolved, from, i + 1);
		from = i + 1;
	}
	lookup->count = 0;
	return 0;
}

static int add_address(struct lookup *lookup, const char *text, size_t len,
		       struct spulse_error **err)
{
	uint64_t address;

	if (!parse_address(text, len, &address)) {
		tool_message("'%.*s' is not an address (hexadecimal digits, 0x or not)",
			     (int)(len < 80 ? len : 80), text);
		return TOOL_FAILED;
	}
	MEM_PUSH(lookup->addresses, lookup->count, lookup->cap) = address;
	return lookup->count < BATCH ? 0 : flush_batch(lookup, err);
}

/* One line of input: an address with blanks around it; an empty line is passed over. */
static int add_line(struct lookup *lookup, const char *line, size_t len,
		    struct spulse_error **err)
{
	while (len && (line[len - 1] == ' ' || line[len - 1] == '\t' || line[len - 1] == '\r'))
		len--;
	while (len && (*line == ' ' || *line == '\t')) {
		line++;
		len--;
	}
	return len ? add_address(lookup, line, len, err) : 0;
}

/* Complete lines of a block; *used says how many bytes they are. */
static int add_lines(struct lookup *lookup, const char *block, size_t len, size_t *used,
		     struct spulse_error **err)
{
	const char *newline;
	int r = 0;

	*used = 0;
	while (!r && (newline = memchr(block + *used, '\n', len - *used))) {
		r = add_line(lookup, block + *used, (size_t)(newline - block) - *used, err);
		*used = (size_t)(newline - block) + 1;
	}
	return r;
}

/* Answers what there is before it waits for more, so that a program can talk to us by pipes. */
static int read_addresses(struct lookup *lookup, struct spulse_error **err)
{
	char block[BLOCK];
	size_t have = 0, used;
	ssize_t got;
	int r;

	do {
		got = read(STDIN_FILENO, block + have, sizeof(block) - have);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			tool_message("cannot read addresses: %s", strerror(errno));
			return TOOL_FAILED;
		}
		have += (size_t)got;
		r = add_lines(lookup, block, have, &used, err);
		if (!r && (!got || have - used == sizeof(block))) {
			r = add_line(lookup, block + used, have - used, err);
			used = have;
		}
		memmove(block, block + used, have - used);
		have -= used;
		if (!r)
			r = flush_batch(lookup, err);
		out_flush(lookup->out);
	} while (!r && got && !out_stopped(lookup->out));
	return r;
}

static int run(struct lookup *lookup, int argc, char **argv, struct spulse_error **err)
{
	int r = 0;

	if (!argc)
		return read_addresses(lookup, err);
	for (int i = 0; i < argc && !r; i++) {
		if (!strcmp(argv[i], "-"))
			r = read_addresses(lookup, err);
		else
			r = add_address(lookup, argv[i], strlen(argv[i]), err);
	}
	return r ? r : flush_batch(lookup, err);
}

static int symbolize(struct lookup *lookup, const char *path, const struct symopts *symopts,
		     int argc, char **argv)
{
	struct spulse_symbolizer_options options = { .size = sizeof(options) };
	struct spulse_error *err = NULL;
	int r;

	symopts_apply(symopts, &options);
	r = spulse_symbolizer_new_for_file(path, &options, &lookup->symbolizer, &err);
	if (r < 0)
		return tool_fail(err);
	lookup->out = out_stdout();
	json_init(&lookup->json, lookup->out);
	r = run(lookup, argc, argv, &err);
	if (err)
		tool_fail(err);
	spulse_symbolizer_free(lookup->symbolizer);
	free(lookup->addresses);
	return out_close(lookup->out, r ? TOOL_FAILED : TOOL_DONE);
}

int cmd_symbolize(int argc, char **argv)
{
	struct symopts symopts = {0};
	struct lookup lookup = {0};
	const char *path = NULL;
	const struct cli_option options[] = {
		{'e', "exe", CLI_STRING, &path, "FILE", .help = "The ELF file. Required."},
		{'j', "json", CLI_FLAG, &lookup.as_json, NULL,
		 .help = "Print one JSON object per address and line."},
		{0, "no-inline", CLI_FLAG, &lookup.no_inline, NULL,
		 .help = "Print the functions that exist, not what was inlined into them."},
		{0, "debug-dir", CLI_STRING, &symopts.debug_dirs, "DIR[:DIR...]",
		 .help = "Folders of separate debug files. Default: $STACKPULSE_DEBUG_DIRS, else "
			 "/usr/lib/debug."},
		symopts_debuginfod(&symopts),
		{0, "threads", CLI_NUMBER, &symopts.threads, "N",
		 .help = "Worker threads. Default: one per CPU.", .minimum = 1, .maximum = 1024},
	};
	const struct cli_group groups[] = {CLI_GROUP("Options", options)};
	const struct cli_spec spec = {
		.command = "symbolize",
		.usage = "-e FILE [OPTION...] [ADDRESS...|-]",
		.about = "Prints the functions and source lines of addresses in an ELF file, as "
			 "its own tables state them (hexadecimal). Without addresses, and for "
			 "-, they are read from stdin, one per line. For each address: the "
			 "function and FILE:LINE:COLUMN of every inlined call, innermost first, "
			 "and of the function that they were inlined into; then an empty line.",
		.groups = groups,
		.group_count = 1,
		.examples = "stackpulse symbolize -e /usr/lib/x86_64-linux-gnu/libz.so.1 0x9d50\n",
		.maximum_arguments = SIZE_MAX,
	};
	int status = cli_parse(&spec, &argc, &argv);

	if (status != CLI_GO_ON)
		return status;
	if (!path)
		return cli_usage_error(&spec, "-e FILE is missing");
	return symbolize(&lookup, path, &symopts, argc, argv);
}
