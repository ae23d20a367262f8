/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A sparse table answers a known set of addresses and keeps only what they need. The text is read
 * in one pass, block by block: each symbol is put into the bucket of the first asked address that
 * is not below it, a bucket keeps its highest symbol, and a walk over the buckets then gives each
 * address the highest symbol below it. So the text needs no order and the names kept are as many
 * as the addresses.
 */
#include "kernel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct kernel_table *kernel_table_new(void)
{
	struct kernel_table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	table->refs = 1;
	strbuf_putc(&table->text, 0);
	return table;
}

static uint32_t add_text(struct strbuf *text, const char *bytes, size_t len)
{
	size_t at = text->len;

	strbuf_add(text, bytes, len);
	strbuf_putc(text, 0);
	return at;
}

/* Modules repeat in long rows: the last one is enough to share them. */
struct module_name {
	const char *bytes;
	size_t len;
	uint32_t offset;
};

static uint32_t add_module(struct strbuf *text, struct module_name *last,
			   const struct kallsyms_line *line)
{
	if (!line->module)
		return 0;
	if (!last->offset || last->len != line->module_len ||
	    memcmp(text->data + last->offset, line->module, last->len)) {
		last->len = line->module_len;
		last->offset = add_text(text, line->module, line->module_len);
	}
	return last->offset;
}

/* Best symbol of a bucket while scanning. */
struct bucket {
	uint64_t address;
	uint32_t name, module;
	uint16_t name_room; /* a later, shorter name is written over an earlier one */
};

static void bucket_set(struct strbuf *text, struct bucket *bucket, struct module_name *module,
		       const struct kallsyms_line *line)
{
	bucket->address = line->address;
	bucket->module = add_module(text, module, line);
	if (bucket->name && line->name_len <= bucket->name_room && !text->failed) {
		memcpy(text->data + bucket->name, line->name, line->name_len);
		text->data[bucket->name + line->name_len] = 0;
		return;
	}
	bucket->name = add_text(text, line->name, line->name_len);
	bucket->name_room = MIN(line->name_len, UINT16_MAX);
}

struct scan {
	struct kernel_table *table;
	struct bucket *buckets;
	size_t at; /* bucket of the last line: texts are mostly sorted */
	struct kallsyms_line best; /* of that bucket, not in it yet; address 0: none */
	struct kallsyms_reader reader;
	struct module_name module;
	bool hidden;
};

/* Puts what waits into its bucket. Its bytes are in the block that is being read. */
static void settle(struct scan *scan)
{
	if (scan->best.address)
		bucket_set(&scan->table->text, &scan->buckets[scan->at], &scan->module,
			   &scan->best);
	scan->best.address = 0;
}

static bool is_bucket(const struct kernel_table *table, size_t at, uint64_t address)
{
	return (!at || table->asked[at - 1] < address) &&
	       (at == table->asked_count || address <= table->asked[at]);
}

static size_t find_bucket(const struct scan *scan, uint64_t address)
{
	const struct kernel_table *table = scan->table;
	size_t at = scan->at;

	if (is_bucket(table, at, address))
		return at;
	if (at < table->asked_count && is_bucket(table, at + 1, address))
		return at + 1;
	return kernel_lower_bound(table->asked, table->asked_count, address);
}

static void scan_symbol(struct scan *scan, const struct kallsyms_line *line)
{
	size_t at = find_bucket(scan, line->address);

	if (at != scan->at) {
		settle(scan);
		scan->at = at;
	}
	if (at < scan->table->asked_count && line->address >= scan->best.address &&
	    line->address >= scan->buckets[at].address)
		scan->best = *line;
}

/* Reads the complete lines of a block; returns how many bytes they are. */
static size_t scan_block(struct scan *scan, const char *text, size_t len)
{
	const char *start = text, *end = text + len, *newline;
	struct kallsyms_line line;

	scan->reader.no_nul = !memchr(text, 0, len);
	while (!scan->hidden && text < end && (newline = memchr(text, '\n', end - text))) {
		enum kallsyms_step step =
			kallsyms_read_line(&scan->reader, text, newline - text, &line);

		text = newline + 1;
		scan->hidden = step == KALLSYMS_HIDDEN;
		if (step == KALLSYMS_SYMBOL)
			scan_symbol(scan, &line);
	}
	settle(scan);
	return text - start;
}

static void scan_finish(struct scan *scan)
{
	struct kernel_table *table = scan->table;
	struct kernel_symbol best = { 0 };

	for (size_t i = 0; i < table->asked_count; i++) {
		const struct bucket *b = &scan->buckets[i];

		if (b->address && b->address >= best.address)
			best = (struct kernel_symbol){ b->address, b->name, b->module };
		table->symbols[i] = best;
		table->count += best.address != 0;
	}
}

/* Feeds a descriptor to the scan; a line longer than the block is dropped. */
static int scan_fd(struct scan *scan, int fd)
{
	enum { BLOCK = 128 << 10 }; /* stays in a processor's second cache */
	_cleanup_free_ char *block = malloc(BLOCK + 1);
	size_t have = 0, total = 0;

	if (!block)
		return -ENOMEM;
	for (;;) {
		ssize_t got = read_full(fd, block + have, BLOCK - have);
		size_t used;

		if (got < 0)
			return got;
		have += got;
		total += got;
		if (total > KERNEL_FILE_MAX)
			return -EFBIG;
		if (!got && have)
			block[have++] = '\n'; /* the last line may have no end */
		used = scan_block(scan, block, have);
		if (!got || scan->hidden)
			return 0;
		if (!used && have == BLOCK)
			used = have;
		memmove(block, block + used, have - used);
		have -= used;
	}
}

static struct kernel_table *sparse_table_new(const uint64_t *addresses, size_t count)
{
	struct kernel_table *table = kernel_table_new();

	if (!table)
		return NULL;
	table->asked = calloc(count + 1, sizeof(*table->asked));
	table->symbols = calloc(count + 1, sizeof(*table->symbols));
	if (!table->asked || !table->symbols) {
		kernel_table_unref(table);
		return NULL;
	}
	if (count)
		memcpy(table->asked, addresses, count * sizeof(*addresses));
	table->asked_count = count;
	return table;
}

int kernel_table_scan(int fd, const uint64_t *addresses, size_t count,
		      struct kernel_table **table_out)
{
	struct scan scan = { .table = sparse_table_new(addresses, count) };
	int r = -ENOMEM;

	scan.buckets = calloc(count + 1, sizeof(*scan.buckets));
	if (scan.table && scan.buckets)
		r = scan_fd(&scan, fd);
	if (!r && scan.table->text.failed)
		r = -ENOMEM;
	if (r < 0) {
		kernel_table_unref(scan.table);
	} else {
		scan_finish(&scan);
		*table_out = scan.table;
	}
	free(scan.buckets);
	return r;
}
