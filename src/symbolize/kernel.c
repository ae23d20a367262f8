/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Kernel symbols. A text is read in one pass. A full table keeps every function; a sparse one
 * answers a known set of addresses and keeps only what they need: each symbol is put into the
 * bucket of the first asked address that is not below it, a bucket keeps its highest symbol, and
 * a walk over the buckets then gives each address the highest symbol below it. So the text needs
 * no order and the names kept are as many as the addresses.
 */
#include "kernel.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Value of a hexadecimal digit plus 1; 0 for anything else. */
static const uint8_t hex_digits[256] = {
	['0'] = 1, ['1'] = 2, ['2'] = 3, ['3'] = 4, ['4'] = 5, ['5'] = 6, ['6'] = 7, ['7'] = 8,
	['8'] = 9, ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15,
	['f'] = 16, ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

static bool is_name(const char *name, size_t len, const char *wanted)
{
	return len == strlen(wanted) && !memcmp(name, wanted, len);
}

/* Labels that assemblers and compilers leave behind; none is a function. */
static bool is_label(const char *name, size_t len)
{
	return name[0] == '$' || (len >= 2 && ((name[0] == '.' && name[1] == 'L') ||
					       (name[0] == 'L' && name[1] == '0')));
}

/* "name [module]": cuts the module off. */
static void split_module(struct kallsyms_line *out)
{
	const char *open;
	size_t len = out->name_len;

	out->module = NULL;
	out->module_len = 0;
	if (!len || out->name[len - 1] != ']')
		return;
	open = memrchr(out->name, '[', len);
	if (!open || open + 2 >= out->name + len)
		return;
	out->module = open;
	out->module_len = out->name + len - open;
	len = open - out->name;
	while (len && isspace((unsigned char)out->name[len - 1]))
		len--;
	out->name_len = len;
}

/* "ADDRESS T name"; false for a line of another shape or a type that is not kept. */
static bool split_line(const char *line, size_t len, struct kallsyms_line *out)
{
	uint64_t address = 0;
	size_t digits = 0;
	uint8_t digit;
	char type;

	while (digits < len && digits < 17 && (digit = hex_digits[(uint8_t)line[digits]])) {
		address = address << 4 | (digit - 1);
		digits++;
	}
	if (!digits || digits > 16 || len < digits + 4)
		return false;
	type = line[digits + 1] | 0x20;
	if (type != 't' && type != 'w' && type != 'd' && type != 'b')
		return false;
	*out = (struct kallsyms_line){
		.address = address,
		.name = line + digits + 3,
		.name_len = len - digits - 3,
	};
	split_module(out);
	return out->name_len;
}

enum kallsyms_step kallsyms_read_line(struct kallsyms_reader *reader, const char *line,
				      size_t len, struct kallsyms_line *out)
{
	if (len && line[len - 1] == '\r')
		len--;
	if ((!reader->no_nul && memchr(line, 0, len)) || !split_line(line, len, out))
		return KALLSYMS_SKIP;
	if (!reader->anchored && !out->module &&
	    (is_name(out->name, out->name_len, "_text") ||
	     is_name(out->name, out->name_len, "_stext"))) {
		if (!out->address)
			return KALLSYMS_HIDDEN;
		reader->anchored = true;
		reader->anchor = out->address;
	}
	if (!out->address || is_label(out->name, out->name_len))
		return KALLSYMS_SKIP;
	/* Per-CPU and other early symbols lie below the text; modules may do so too. */
	if (!out->module && (!reader->anchored || out->address < reader->anchor))
		return KALLSYMS_SKIP;
	return KALLSYMS_SYMBOL;
}

/* ---- tables ---- */

static struct kernel_table *kernel_table_new(void)
{
	struct kernel_table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	table->refs = 1;
	strbuf_putc(&table->text, 0);
	return table;
}

struct kernel_table *kernel_table_ref(struct kernel_table *table)
{
	if (table)
		__atomic_add_fetch(&table->refs, 1, __ATOMIC_RELAXED);
	return table;
}

void kernel_table_unref(struct kernel_table *table)
{
	if (!table || __atomic_sub_fetch(&table->refs, 1, __ATOMIC_ACQ_REL))
		return;
	free(table->symbols);
	free(table->asked);
	strbuf_release(&table->text);
	free(table);
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


static int compare_symbols(const void *a, const void *b)
{
	const struct kernel_symbol *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	/* Text offsets grow with the order in the file. */
	return x->name < y->name ? -1 : 1;
}

/* Sorts by address; of equal ones the last in the file stays. */
static void sort_symbols(struct kernel_symbol *symbols, size_t *count)
{
	size_t kept = 0;
	bool sorted = true;

	for (size_t i = 1; i < *count && sorted; i++)
		sorted = symbols[i - 1].address <= symbols[i].address;
	if (!sorted)
		qsort(symbols, *count, sizeof(*symbols), compare_symbols);
	for (size_t i = 0; i < *count; i++) {
		if (kept && symbols[kept - 1].address == symbols[i].address)
			kept--;
		symbols[kept++] = symbols[i];
	}
	*count = kept;
}

/*
 * Terminates a line's names where they stand; what ended them is not needed any more. A name that
 * its module follows at once moves over the blank before it.
 */
static void cut_names(struct kernel_table *table, struct kallsyms_line *line)
{
	char *name = table->text.data + (line->name - table->text.data);

	if (line->module) {
		name[line->module - line->name + line->module_len] = 0;
		if (line->module == line->name + line->name_len) {
			memmove(name - 1, name, line->name_len);
			line->name = --name;
		}
	}
	name[line->name_len] = 0;
}

/* False when memory ran out. */
static bool read_symbols(struct kernel_table *table)
{
	VEC(struct kernel_symbol) symbols = { 0 };
	struct kallsyms_reader reader = { 0 };
	const char *start = table->text.data, *text = start, *end = start + table->text.len;
	bool kept = true;

	reader.no_nul = !memchr(start, 0, table->text.len);
	while (text < end && kept) {
		const char *newline = memchr(text, '\n', end - text);
		size_t line_len = (newline ? newline : end) - text;
		struct kallsyms_line line;
		enum kallsyms_step step = kallsyms_read_line(&reader, text, line_len, &line);

		text += line_len + 1;
		if (step == KALLSYMS_HIDDEN)
			break;
		if (step == KALLSYMS_SKIP)
			continue;
		cut_names(table, &line);
		kept = vec_push(&symbols, (struct kernel_symbol){
				.address = line.address,
				.name = line.name - start,
				.module = line.module ? line.module - start : 0 });
	}
	if (kept)
		sort_symbols(symbols.data, &symbols.len);
	table->symbols = symbols.data;
	table->count = symbols.len;
	return kept;
}

struct kernel_table *kernel_table_take(struct strbuf *text)
{
	struct kernel_table *table = calloc(1, sizeof(*table));

	/* An end mark behind the last line, which may have no end of its own. */
	strbuf_putc(text, '\n');
	if (!table || text->failed || text->len > UINT32_MAX) {
		strbuf_release(text);
		free(table);
		return NULL;
	}
	table->refs = 1;
	table->text = *text;
	*text = (struct strbuf){ 0 };
	if (!read_symbols(table)) {
		kernel_table_unref(table);
		return NULL;
	}
	return table;
}

struct kernel_table *kernel_table_parse(const char *text, size_t len)
{
	struct strbuf copy = { 0 };

	strbuf_add(&copy, text, len);
	return kernel_table_take(&copy);
}

/* First index whose value is not below the address. */
static size_t lower_bound(const uint64_t *values, size_t count, uint64_t address)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (values[middle] < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
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
	struct kallsyms_reader reader;
	struct module_name module;
	bool hidden;
};

/* Reads the complete lines of a block; returns how many bytes they are. */
static size_t scan_block(struct scan *scan, const char *text, size_t len)
{
	struct kernel_table *table = scan->table;
	const char *start = text, *end = text + len, *newline;
	struct kallsyms_line line;

	while (!scan->hidden && text < end && (newline = memchr(text, '\n', end - text))) {
		enum kallsyms_step step;
		size_t at;

		step = kallsyms_read_line(&scan->reader, text, newline - text, &line);
		text = newline + 1;
		scan->hidden = step == KALLSYMS_HIDDEN;
		if (step != KALLSYMS_SYMBOL)
			continue;
		at = lower_bound(table->asked, table->asked_count, line.address);
		if (at < table->asked_count && line.address >= scan->buckets[at].address)
			bucket_set(&table->text, &scan->buckets[at], &scan->module, &line);
	}
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
	enum { BLOCK = 1 << 20 };
	_cleanup_free_ char *block = malloc(BLOCK + 1);
	size_t have = 0;

	if (!block)
		return -ENOMEM;
	for (;;) {
		ssize_t got = read_full(fd, block + have, BLOCK - have);
		size_t used;

		if (got < 0)
			return got;
		have += got;
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

static const struct kernel_symbol *find_full(const struct kernel_table *table, uint64_t address)
{
	size_t low = 0, high = table->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (table->symbols[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &table->symbols[low - 1] : NULL;
}

static const struct kernel_symbol *find_sparse(const struct kernel_table *table, uint64_t address)
{
	size_t at = lower_bound(table->asked, table->asked_count, address);

	if (at == table->asked_count || table->asked[at] != address)
		return NULL;
	return table->symbols[at].address ? &table->symbols[at] : NULL;
}

bool kernel_table_find(const struct kernel_table *table, uint64_t address, struct kernel_hit *hit)
{
	const struct kernel_symbol *symbol;

	if (!table)
		return false;
	symbol = table->asked ? find_sparse(table, address) : find_full(table, address);
	if (!symbol)
		return false;
	hit->name = table->text.data + symbol->name;
	hit->module = symbol->module ? table->text.data + symbol->module : "[kernel]";
	hit->offset = address - symbol->address;
	return true;
}
