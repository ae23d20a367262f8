/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SYMBOLIZE_KERNEL_H
#define SPULSE_SYMBOLIZE_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/base.h"

/* ---- the text of /proc/kallsyms or a System.map ---- */

struct kallsyms_line {
	uint64_t address;
	const char *name;	/* not terminated */
	size_t name_len;
	const char *module;	/* with its brackets; NULL: the kernel itself */
	size_t module_len;
};

enum kallsyms_step {
	KALLSYMS_SYMBOL,
	KALLSYMS_SKIP,
	KALLSYMS_HIDDEN, /* addresses are hidden from us: nothing usable will follow */
};

/* State of one pass: symbols of the kernel itself count from _text or _stext on. */
struct kallsyms_reader {
	uint64_t anchor;
	bool anchored;
	bool no_nul; /* the caller knows that there is none */
};

/* Reads one line (without its end). */
enum kallsyms_step kallsyms_read_line(struct kallsyms_reader *reader, const char *line,
				      size_t len, struct kallsyms_line *out);

/* ---- tables ---- */

struct kernel_symbol {
	uint64_t address;
	uint32_t name;	 /* offset in text */
	uint32_t module; /* offset in text; 0: the kernel itself */
};

/* Immutable once built; counted, as it is shared by symbolizers of different threads. */
struct kernel_table {
	unsigned int refs;
	struct kernel_symbol *symbols; /* by address, one for each */
	size_t count;
	struct strbuf text;
	/* A sparse table: the symbol below each asked address, by the same index; address 0 where
	 * there is none. */
	uint64_t *asked;
	size_t asked_count;
};

struct kernel_hit {
	const char *name;
	const char *module; /* "[kernel]" or "[name]" */
	uint64_t offset;
};

/* A table of all symbols of a text, whose memory it takes over; NULL when memory ran out. */
struct kernel_table *kernel_table_take(struct strbuf *text);
/* The same of a text that stays the caller's. */
struct kernel_table *kernel_table_parse(const char *text, size_t len);
/* Sparse: reads kallsyms text from a descriptor for sorted distinct addresses. 0 or -errno. */
int kernel_table_scan(int fd, const uint64_t *addresses, size_t count,
		      struct kernel_table **table_out);
struct kernel_table *kernel_table_ref(struct kernel_table *table);
void kernel_table_unref(struct kernel_table *table);
/* First index whose value is not below the address. */
size_t kernel_lower_bound(const uint64_t *values, size_t count, uint64_t address);
/* Whether a table may say something of an address: a sparse one only of those asked for. */
bool kernel_table_covers(const struct kernel_table *table, uint64_t address);
/* The symbol at or below an address. */
bool kernel_table_find(const struct kernel_table *table, uint64_t address,
		       struct kernel_hit *hit);

/* ---- sources ---- */

enum { KERNEL_FILE_MAX = 64 << 20 };

/* Descriptor of a preserved kallsyms file: regular, behind no symbolic link, at most 64 MiB. */
int kernel_file_open(const char *path, struct spulse_error **err);
/* All symbols of what follows in a descriptor. 0 or -errno. */
int kernel_table_read(int fd, struct kernel_table **table_out);
/* All symbols of such a file. */
int kernel_table_load(const char *path, struct kernel_table **table_out,
		      struct spulse_error **err);
/*
 * This host's symbols for sorted distinct addresses, kept for the next symbolizer that asks the
 * same. `anchors`: run addresses of _text as recorded. NULL: none.
 */
struct kernel_table *kernel_host_sparse(const uint64_t *addresses, size_t count,
					const uint64_t *anchors, size_t anchor_count);
/* All of this host's kallsyms, read once per process; NULL when there are none. */
struct kernel_table *kernel_host_full(void);
/* Warns once per process, saying why there are no kernel names. */
void kernel_warn_once(int errnum);

/* ---- System.map ---- */

/* From the System.map of this host's kernel, moved by the slide that explains most addresses. */
struct kernel_table *sysmap_lookup(const uint64_t *addresses, size_t count,
				   const uint64_t *anchors, size_t anchor_count);
/* The same with given tables, for tests; returns the number of matches. */
struct kernel_table *sysmap_match(struct kernel_table *const *maps, size_t map_count,
				  const uint64_t *addresses, size_t count,
				  const uint64_t *anchors, size_t anchor_count);

#endif
