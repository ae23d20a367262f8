/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_SYMBOLIZE_PROGRAM_H
#define SPULSE_SYMBOLIZE_PROGRAM_H

#include "dwarf.h"
#include "fdestarts.h"
#include "store.h"
#include "symtab.h"

/*
 * What is known of one image: its functions by address, the DWARF of it or of its debug file, and
 * the names that were asked for, demangled once.
 */
struct shown_name {
	const char *name, *suffix;
};

struct program {
	struct image *image;
	char *path; /* where it was recorded; its debug files may be neighbours */
	struct image_debug debug;
	bool loaded;
	bool wanted; /* by the current preparation */
	uint64_t used; /* tick of the last use */
	struct symtab symtab;
	struct fde_starts starts; /* read when code without a symbol is met */
	bool starts_read;
	uint64_t known_start, known_end; /* the function found last */
	struct dwarf_info *dwarf;
	struct dwarf_reader reader; /* open while units are being filled one by one */
	struct u64map name_ids; /* by address of the linker name */
	VEC(struct shown_name) names;
	struct arena name_bytes;
	struct strbuf story; /* where names come from, for reports */
};

struct program *program_new(struct image *image, const char *path);
void program_free(struct program *program);
/* Reads tables and finds debug files; once. What cannot be read costs only its own names. */
void program_load(struct program *program, const struct image_debug_options *options);
/* The unit of an address, not yet filled perhaps; NULL without DWARF there. */
struct dwarf_unit *program_unit(const struct program *program, uint64_t address);
/* Demangled; NULL when memory ran out. Lives as long as the program. */
const struct shown_name *program_name(struct program *program, const char *linker_name);
/* Adds the levels of an address to results. */
int program_resolve(struct program *program, uint64_t address, bool hidden, size_t index,
		    struct spulse_native_results *results, struct spulse_error **err);
/* Start of the function around an address as unwind tables know it; false without one. */
bool program_function_start(struct program *program, uint64_t address, uint64_t *start);
/* Adds lines that say what its names come from. */
void program_describe(const struct program *program, struct strbuf *sb);
/* Bytes of its tables. */
size_t program_bytes(const struct program *program);

/* The program of a module's image, added when new; NULL when memory ran out. */
struct program *store_program(struct native_store *store,
			      const struct spulse_native_module *module);
const struct image_debug_options *store_options(const struct native_store *store);
/* Walks the programs; *position starts at 0. */
struct program *store_next(struct native_store *store, size_t *position);

#endif
