/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Kernel symbols: the lines of kallsyms, tables of all of them, and lookups. */
#include "kernel.h"

#include <ctype.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

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

/* Eight digits in small letters at once; false when they are anything else. */
static bool read_digits(const char *text, uint32_t *value)
{
	const uint64_t each = 0x0101010101010101;
	uint64_t chars, digits, letters;

	memcpy(&chars, text, sizeof(chars));
	chars = be64toh(chars);
	digits = (chars & 15 * each) + 9 * (chars >> 6 & each);
	letters = (digits + 6 * each) >> 4 & each;
	if ((digits & 0xf0 * each) || digits + '0' * each + ('a' - '0' - 10) * letters != chars)
		return false;
	digits = (digits | digits >> 4) & 0x00ff00ff00ff00ff;
	digits = (digits | digits >> 8) & 0x0000ffff0000ffff;
	*value = digits | digits >> 16;
	return true;
}

/* Number of digits, 0 when there is no address. The kernel writes 16 of them. */
static size_t read_address(const char *line, size_t len, uint64_t *address)
{
	size_t digits = 0;
	uint32_t high, low;
	uint8_t digit;

	if (len > 16 && !hex_digits[(uint8_t)line[16]] && read_digits(line, &high) &&
	    read_digits(line + 8, &low)) {
		*address = (uint64_t)high << 32 | low;
		return 16;
	}
	*address = 0;
	while (digits < len && digits < 17 && (digit = hex_digits[(uint8_t)line[digits]])) {
		*address = *address << 4 | (digit - 1);
		digits++;
	}
	return digits > 16 ? 0 : digits;
}

/* "ADDRESS T name"; false for a line of another shape or a type that is not kept. */
static bool split_line(const char *line, size_t len, struct kallsyms_line *out)
{
	uint64_t address;
	size_t digits = read_address(line, len, &address);
	char type;

	if (!digits || len < digits + 4)
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
size_t kernel_lower_bound(const uint64_t *values, size_t count, uint64_t address)
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
	size_t at = kernel_lower_bound(table->asked, table->asked_count, address);

	if (at == table->asked_count || table->asked[at] != address)
		return NULL;
	return table->symbols[at].address ? &table->symbols[at] : NULL;
}

bool kernel_table_covers(const struct kernel_table *table, uint64_t address)
{
	size_t at;

	if (!table->asked)
		return true;
	at = kernel_lower_bound(table->asked, table->asked_count, address);
	return at < table->asked_count && table->asked[at] == address;
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
