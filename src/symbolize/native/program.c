/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "program.h"

#include <stdlib.h>
#include <string.h>

#include "demangle.h"

struct program *program_new(struct image *image, const char *path)
{
	struct program *program = calloc(1, sizeof(*program));

	if (!program)
		return NULL;
	program->image = image_ref(image);
	program->path = strdup(path);
	if (!program->path) {
		program_free(program);
		return NULL;
	}
	return program;
}

void program_free(struct program *program)
{
	if (!program)
		return;
	if (program->reader.info)
		dwarf_reader_close(&program->reader);
	dwarf_info_free(program->dwarf);
	symtab_release(&program->symtab);
	fde_starts_release(&program->starts);
	u64map_release(&program->name_ids);
	vec_free(&program->names);
	arena_release(&program->name_bytes);
	strbuf_release(&program->story);
	image_debug_release(&program->debug);
	image_unref(program->image);
	free(program->path);
	free(program);
}

static void load_symbols(struct program *program)
{
	struct image *images[3] = { program->image };
	size_t n = 1;

	if (program->debug.file)
		images[n++] = program->debug.file;
	if (program->debug.mini)
		images[n++] = program->debug.mini;
	if (!symtab_build(&program->symtab, images, n))
		strbuf_puts(&program->story, "symbols: out of memory\n");
}

static void load_dwarf(struct program *program, const struct image_debug_options *options)
{
	struct spulse_error *error = NULL;
	struct image *from = program->debug.file ? program->debug.file : program->image;

	if (dwarf_info_open(program->image, from, program->debug.alt, &program->dwarf,
			    &error) < 0) {
		strbuf_printf(&program->story, "debug information of %s: %s\n", image_path(from),
			      spulse_error_message(error));
		log_debug("debug information of %s: %s", image_path(from),
			  spulse_error_message(error));
		spulse_error_free(error);
	}
	if (program->dwarf && !dwarf_info_set_places(program->dwarf, program->path,
						     options->sysroot, program->debug.package)) {
		dwarf_info_free(program->dwarf);
		program->dwarf = NULL;
	}
}

void program_load(struct program *program, const struct image_debug_options *options)
{
	struct image_debug_options own = *options;
	struct spulse_error *error = NULL;

	if (program->loaded)
		return;
	program->loaded = true;
	own.path = program->path;
	if (image_debug_find(program->image, &own, &program->debug, &error) < 0) {
		strbuf_printf(&program->story, "debug files: %s\n", spulse_error_message(error));
		spulse_error_free(error);
	}
	load_symbols(program);
	load_dwarf(program, options);
}

struct dwarf_unit *program_unit(const struct program *program, uint64_t address)
{
	return program->dwarf ? dwarf_find_unit(program->dwarf, address) : NULL;
}

/* Go writes its names plainly: a dot in them never starts a clone's suffix. */
static bool go_names(const struct program *program)
{
	return image_section_by_name(program->image, ".gopclntab") != NULL;
}

static struct demangled as_it_is(const char *linker_name)
{
	return (struct demangled){ .name = strdup(linker_name), .suffix = "" };
}

const struct shown_name *program_name(struct program *program, const char *linker_name)
{
	bool added;
	uint64_t *id = u64map_add(&program->name_ids, (uintptr_t)linker_name, &added);
	struct demangled demangled;
	struct shown_name shown;

	if (!id)
		return NULL;
	if (!added)
		return &program->names.data[*id];
	*id = program->names.len;
	demangled = go_names(program) ? as_it_is(linker_name) : demangle(linker_name);
	if (!demangled.name)
		return NULL;
	shown.name = arena_strndup(&program->name_bytes, demangled.name, strlen(demangled.name));
	shown.suffix = *demangled.suffix ?
		arena_strndup(&program->name_bytes, demangled.suffix, strlen(demangled.suffix)) :
		NULL;
	free(demangled.name);
	if (!shown.name || !vec_push(&program->names, shown)) {
		u64map_remove(&program->name_ids, (uintptr_t)linker_name);
		return NULL;
	}
	return &vec_last(&program->names);
}

/* A unit that lookups may use, with what it has on the address filled now if it was not yet. */
static struct dwarf_unit *ready_unit(struct program *program, uint64_t address)
{
	struct dwarf_unit *unit = program_unit(program, address);

	if (!unit)
		return NULL;
	if (!program->reader.info)
		dwarf_reader_open(&program->reader, program->dwarf);
	if (unit->state == UNIT_EMPTY)
		dwarf_fill_unit(program->dwarf, &program->reader, unit);
	if (unit->state != UNIT_READY)
		return NULL;
	dwarf_fill_function(program->dwarf, &program->reader, unit, address);
	return unit;
}

/*
 * The outermost level is the function that really exists: the symbol table knows its name with
 * the suffix of a clone. A label without a size knows less than DWARF. A level whose name is in a
 * file that is not here is called as the function that it is in.
 */
static const char *level_name(const struct symtab_entry *entry, const struct dwarf_level *level,
			      bool outermost)
{
	if (entry && (!level->name || (outermost && entry->sized)))
		return entry->name;
	return level->name;
}

static int add_level(struct program *program, const char *name, const struct dwarf_level *level,
		     uint64_t offset, bool hidden, size_t index,
		     struct spulse_native_results *results, struct spulse_error **err)
{
	struct spulse_native_symbol symbol = {
		.size = sizeof(symbol),
		.name = "<unknown>",
		.file = level->file,
		.line = level->line,
		.column = level->column,
		.function_start_line = level->declared_line,
		.function_start_column = level->declared_column,
		.offset = offset,
		.flags = hidden ? SPULSE_SYMBOL_HIDDEN : 0,
	};
	const struct shown_name *shown;

	if (name) {
		shown = program_name(program, name);
		if (!shown)
			return err_no_memory(err);
		symbol.name = shown->name;
		symbol.suffix = shown->suffix;
	}
	return spulse_native_results_add(results, index, &symbol, err);
}

int program_resolve(struct program *program, uint64_t address, bool hidden, size_t index,
		    struct spulse_native_results *results, struct spulse_error **err)
{
	struct dwarf_level levels[DWARF_LEVELS_MAX];
	const struct symtab_entry *entry = symtab_find(&program->symtab, address);
	struct dwarf_unit *unit = ready_unit(program, address);
	size_t n = unit ? dwarf_lookup(program->dwarf, unit, address, levels) : 0;
	uint64_t offset;
	int r = 0;

	if (!n) {
		if (!entry)
			return 0;
		levels[n++] = (struct dwarf_level){ .file = entry->file };
	}
	/* A line without any name is of no use to a profile. */
	if (n == 1 && !entry && !levels[0].name)
		return 0;
	offset = entry && (entry->sized || !levels[n - 1].name) ?
		address - entry->start : address - levels[n - 1].entry;
	for (size_t i = 0; i < n && !r; i++)
		r = add_level(program, level_name(entry, &levels[i], i + 1 == n), &levels[i],
			      offset, hidden, index, results, err);
	return r;
}

bool program_function_start(struct program *program, uint64_t address, uint64_t *start)
{
	if (!program->starts_read)
		fde_starts_read(&program->starts, program->image);
	program->starts_read = true;
	if ((address < program->known_start || address >= program->known_end) &&
	    !fde_starts_find(&program->starts, program->image, address, &program->known_start,
			     &program->known_end)) {
		program->known_end = 0;
		return false;
	}
	*start = program->known_start;
	return true;
}

size_t program_bytes(const struct program *program)
{
	size_t bytes = program->symtab.count * 48 + program->name_bytes.total +
		       program->names.len * 64 + program->starts.len * sizeof(struct fde_start);

	if (program->dwarf)
		bytes += program->dwarf->table_bytes + program->dwarf->unit_count * 96;
	return bytes;
}

void program_describe(const struct program *program, struct strbuf *sb)
{
	size_t len;
	const uint8_t *id = image_build_id(program->image, &len);

	strbuf_printf(sb, "file %s", image_path(program->image));
	for (size_t i = 0; id && i < len; i++)
		strbuf_printf(sb, "%s%02x", i ? "" : ", build ID ", id[i]);
	strbuf_puts(sb, "\n");
	for (size_t i = 0; i < program->debug.tries.len; i++) {
		const struct image_debug_try *attempt = &program->debug.tries.data[i];

		strbuf_printf(sb, "%s %s: %s\n", image_debug_kind_name(attempt->kind),
			      attempt->path, attempt->reason ? attempt->reason : "used");
	}
	strbuf_printf(sb, "%zu functions", program->symtab.count);
	if (program->dwarf)
		strbuf_printf(sb, ", lines and inlined calls of %zu units\n",
			      program->dwarf->unit_count);
	else
		strbuf_puts(sb, ", no lines\n");
	if (program->dwarf && program->dwarf->splits_missing)
		strbuf_printf(sb,
			      "functions of %u units: files of split DWARF (.dwo) are missing\n",
			      program->dwarf->splits_missing);
	if (program->story.len)
		strbuf_add(sb, program->story.data, program->story.len);
}
