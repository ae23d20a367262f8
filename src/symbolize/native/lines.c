/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Decoder of line programs, versions 2 to 5. Every byte is checked against the program's end. */
#include "bytecursor.h"
#include "lines.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

static uint32_t clip32(uint64_t value)
{
	return MIN(value, UINT32_MAX);
}

/* ---- the header ---- */

struct program {
	struct cursor c; /* the opcodes, once the header was read */
	unsigned int version, offset_size;
	unsigned int min_length, max_ops, opcode_base, line_range;
	int line_base;
	const uint8_t *lengths; /* arguments of standard opcodes, from 1 on */
};

static const char *section_string(const struct dwarf_info *info, const char *name, uint64_t offset)
{
	size_t len;
	const uint8_t *bytes = memelf_find(&info->elf, name, &len);

	if (bytes)
		memelf_touch(&info->elf, name, 0, len);
	if (!bytes || offset >= len || !memchr(bytes + offset, 0, len - offset))
		return "";
	return (const char *)bytes + offset;
}

/* What one field of a version 5 entry says. */
struct field {
	uint64_t type, form;
};

static uint64_t take_field(const struct line_table *table, const struct program *p,
			   struct cursor *c, uint64_t form, const char **string)
{
	switch (form) {
	case DW_FORM_string:
		*string = take_string(c);
		return 0;
	case DW_FORM_line_strp:
		*string = section_string(table->info, ".debug_line_str",
					 take_fixed(c, p->offset_size));
		return 0;
	case DW_FORM_strp:
		*string = section_string(table->info, ".debug_str", take_fixed(c, p->offset_size));
		return 0;
	case DW_FORM_udata:
		return take_uleb(c);
	case DW_FORM_data1:
		return take_fixed(c, 1);
	case DW_FORM_data2:
		return take_fixed(c, 2);
	case DW_FORM_data4:
		return take_fixed(c, 4);
	case DW_FORM_data8:
		return take_fixed(c, 8);
	case DW_FORM_data16:
		skip_bytes(c, 16);
		return 0;
	case DW_FORM_block:
		skip_bytes(c, take_uleb(c));
		return 0;
	default:
		c->broken = true;
		return 0;
	}
}

/* A version 5 list of folders or files. */
static void read_entries(struct line_table *table, const struct program *p, struct cursor *c,
			 bool files)
{
	struct field fields[16];
	size_t field_count = take_fixed(c, 1);
	uint64_t count;

	if (field_count > ARRAY_LEN(fields)) {
		c->broken = true;
		return;
	}
	for (size_t i = 0; i < field_count; i++) {
		fields[i].type = take_uleb(c);
		fields[i].form = take_uleb(c);
	}
	count = take_uleb(c);
	if (!field_count)
		return;
	for (uint64_t i = 0; i < count && !c->broken && !table->failed; i++) {
		struct line_file file = { .name = "", .id = UINT32_MAX };

		for (size_t f = 0; f < field_count; f++) {
			const char *string = NULL;
			uint64_t number = take_field(table, p, c, fields[f].form, &string);

			if (fields[f].type == DW_LNCT_path && string)
				file.name = string;
			else if (fields[f].type == DW_LNCT_directory_index)
				file.folder = clip32(number);
		}
		if (files ? !vec_push(&table->files, file) : !vec_push(&table->folders, file.name))
			table->failed = true;
	}
}

/* Version 2 to 4: lists that end with an empty name; folder 0 and file 0 are the unit's own. */
static void read_old_entries(struct line_table *table, struct cursor *c)
{
	const char *name;

	table->failed |= !vec_push(&table->folders, "") ||
			 !vec_push(&table->files, (struct line_file){ "", 0, UINT32_MAX });
	while (!c->broken && !table->failed && *(name = take_string(c)))
		table->failed |= !vec_push(&table->folders, name);
	while (!c->broken && !table->failed && *(name = take_string(c))) {
		struct line_file file = { .name = name, .id = UINT32_MAX };

		file.folder = clip32(take_uleb(c));
		take_uleb(c);
		take_uleb(c);
		table->failed |= !vec_push(&table->files, file);
	}
}

static bool read_header(struct line_table *table, struct program *p)
{
	struct cursor *c = &p->c;
	uint64_t length = take_fixed(c, 4), header_length;
	struct cursor header;

	p->offset_size = length == 0xffffffff ? 8 : 4;
	if (p->offset_size == 8)
		length = take_fixed(c, 8);
	if (length > (uint64_t)(c->end - c->at))
		length = c->end - c->at;
	c->end = c->at + length;
	p->version = take_fixed(c, 2);
	if (p->version < 2 || p->version > 5)
		return false;
	if (p->version >= 5 && (take_fixed(c, 1) != 8 || take_fixed(c, 1) != 0))
		return false;
	header_length = take_fixed(c, p->offset_size);
	header = *c;
	skip_bytes(c, header_length);
	if (c->broken)
		return false;
	header.end = c->at;
	p->min_length = take_fixed(&header, 1);
	p->max_ops = p->version >= 4 ? take_fixed(&header, 1) : 1;
	take_fixed(&header, 1); /* default_is_stmt: every row counts */
	p->line_base = (int8_t)take_fixed(&header, 1);
	p->line_range = take_fixed(&header, 1);
	p->opcode_base = take_fixed(&header, 1);
	p->lengths = header.at;
	skip_bytes(&header, p->opcode_base ? p->opcode_base - 1 : 0);
	if (header.broken || !p->line_range || !p->opcode_base || !p->max_ops)
		return false;
	if (p->version >= 5) {
		read_entries(table, p, &header, false);
		read_entries(table, p, &header, true);
	} else {
		read_old_entries(table, &header);
	}
	return true;
}

/* ---- the program ---- */

/* Where rows go; the registers are apart from it so that they need not be in memory. */
struct sequence_state {
	struct row_buffer *buffer;
	bool skipped; /* the sequence does not lie in code: see find_code_range() */
	bool open;    /* the sequence has rows */
};

struct registers {
	uint64_t address, file, line, column;
	uint32_t op_index;
};

static const struct registers fresh_registers = { .file = 1, .line = 1 };

static bool says_the_same(const struct dwarf_row *a, const struct dwarf_row *b)
{
	return a->line == b->line && a->file == b->file && a->column == b->column;
}

/*
 * Of a sequence's rows at one address the last counts, one that says the same as the row before
 * is left out, and so is one that goes back.
 */
static bool push_row(struct row_buffer *buffer, const struct dwarf_row *row, bool first)
{
	size_t n = buffer->rows.len;
	struct dwarf_row *last = n ? &buffer->rows.data[n - 1] : NULL;

	if (first || !last) {
		buffer->unsorted |= last && row->address < last->address;
		return vec_push(&buffer->sequences, n) && vec_push(&buffer->rows, *row);
	}
	if (row->address < last->address)
		return true;
	if (row->address > last->address)
		return says_the_same(last, row) || vec_push(&buffer->rows, *row);
	if (n - 1 > vec_last(&buffer->sequences) && says_the_same(last - 1, row))
		buffer->rows.len--;
	else
		*last = *row;
	return true;
}

static void add_row(struct line_table *table, struct sequence_state *s, struct registers at,
		    bool end)
{
	const struct dwarf_info *info = table->info;
	struct dwarf_row row = { .file = MIN(at.file, ROW_NO_FILE), .line = clip32(at.line),
				 .column = MIN(at.column, UINT16_MAX) };
	bool first = !s->open;

	if (first)
		s->skipped = at.address < info->base || at.address >= info->code_end;
	s->open = !end;
	if (s->skipped || (end && first) || at.address < info->base)
		return;
	row.address = MIN(at.address - info->base, UINT32_MAX);
	if (end)
		row = (struct dwarf_row){ .address = row.address, .file = ROW_END };
	if (!push_row(s->buffer, &row, first))
		table->failed = true;
}

static inline void advance(const struct program *p, struct registers *r, uint64_t operations)
{
	if (likely(p->max_ops == 1)) {
		r->address += p->min_length * operations;
		return;
	}
	operations += r->op_index;
	r->address += p->min_length * (operations / p->max_ops);
	r->op_index = operations % p->max_ops;
}

static inline void run_extended(struct line_table *table, struct cursor *from,
				struct sequence_state *s, struct registers *r)
{
	uint64_t length = take_uleb(from);
	struct cursor c = *from;
	struct line_file file;

	skip_bytes(from, length);
	c.end = from->at;
	switch (take_fixed(&c, 1)) {
	case DW_LNE_end_sequence:
		add_row(table, s, *r, true);
		s->skipped = false;
		*r = fresh_registers;
		break;
	case DW_LNE_set_address:
		r->address = take_fixed(&c, MIN((size_t)(c.end - c.at), (size_t)8));
		r->op_index = 0;
		break;
	case DW_LNE_define_file:
		file = (struct line_file){ .name = take_string(&c), .id = UINT32_MAX };
		file.folder = clip32(take_uleb(&c));
		table->failed |= !vec_push(&table->files, file);
		break;
	default:
		break;
	}
}

static inline void run_standard(struct line_table *table, const struct program *p,
				struct cursor *c, struct sequence_state *s, struct registers *r,
				unsigned int opcode)
{
	switch (opcode) {
	case DW_LNS_copy:
		add_row(table, s, *r, false);
		break;
	case DW_LNS_advance_pc:
		advance(p, r, take_uleb(c));
		break;
	case DW_LNS_advance_line:
		r->line += take_sleb(c);
		break;
	case DW_LNS_set_file:
		r->file = take_uleb(c);
		break;
	case DW_LNS_set_column:
		r->column = take_uleb(c);
		break;
	case DW_LNS_const_add_pc:
		advance(p, r, (255 - p->opcode_base) / p->line_range);
		break;
	case DW_LNS_fixed_advance_pc:
		r->address += take_fixed(c, 2);
		r->op_index = 0;
		break;
	case DW_LNS_negate_stmt:
	case DW_LNS_set_basic_block:
	case DW_LNS_set_prologue_end:
	case DW_LNS_set_epilogue_begin:
		break;
	default:
		for (unsigned int i = p->lengths[opcode - 1]; i; i--)
			take_uleb(c);
	}
}

/* What special opcodes do, by opcode: two divisions for each row are much of the whole. */
struct special {
	uint8_t operations;
	int16_t line;
};

static void list_specials(const struct program *p, struct special specials[256])
{
	for (unsigned int i = p->opcode_base; i < 256; i++)
		specials[i] = (struct special){
			(i - p->opcode_base) / p->line_range,
			p->line_base + (int)((i - p->opcode_base) % p->line_range),
		};
}

static void run_program(struct line_table *table, const struct program *p,
			struct row_buffer *buffer)
{
	struct sequence_state s = { .buffer = buffer };
	struct registers r = fresh_registers;
	struct cursor c = p->c;
	struct special specials[256];

	list_specials(p, specials);
	while (c.at < c.end && !c.broken && !table->failed) {
		unsigned int opcode = *c.at++;

		if (opcode >= p->opcode_base) {
			advance(p, &r, specials[opcode].operations);
			r.line += specials[opcode].line;
			add_row(table, &s, r, false);
		} else if (opcode) {
			run_standard(table, p, &c, &s, &r, opcode);
		} else {
			run_extended(table, &c, &s, &r);
		}
	}
}

/*
 * A program's bytes: the section's own, or copied to where the next program will be, as nothing
 * is looked at again. NULL when there are none.
 */
static const uint8_t *program_bytes(const struct dwarf_info *info, uint64_t offset,
				    struct row_buffer *buffer, size_t *len)
{
	const uint8_t *bytes = memelf_find(&info->elf, ".debug_line", len);
	uint8_t head[12];
	uint64_t length;

	if (!bytes || offset >= *len)
		return NULL;
	*len -= offset;
	if (!memelf_lazy_section(&info->elf, ".debug_line"))
		return bytes + offset;
	if (!memelf_peek(&info->elf, ".debug_line", offset, head, sizeof(head)))
		return NULL;
	length = load_u32(head);
	if (length == UINT32_MAX)
		length = load_u64(head + 4);
	*len = MIN(*len, MIN(length, (uint64_t)*len) + sizeof(head));
	if (!vec_reserve(&buffer->program, *len) ||
	    !memelf_peek(&info->elf, ".debug_line", offset, buffer->program.data, *len))
		return NULL;
	return buffer->program.data;
}

/* Keeps a name that lies in the buffer. */
static bool keep_name(struct line_table *table, const uint8_t *bytes, size_t len,
		      const char **name)
{
	if ((uintptr_t)*name - (uintptr_t)bytes < len)
		*name = arena_strndup(&table->names, *name, strlen(*name));
	return *name;
}

static void keep_names(struct line_table *table, const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < table->folders.len && !table->failed; i++)
		table->failed = !keep_name(table, bytes, len, &table->folders.data[i]);
	for (size_t i = 0; i < table->files.len && !table->failed; i++)
		table->failed = !keep_name(table, bytes, len, &table->files.data[i].name);
}

void line_table_read(struct line_table *table, struct dwarf_info *info, uint64_t offset,
		     const char *unit_folder, struct row_buffer *buffer)
{
	struct program p = { .version = 0 };
	size_t len;
	const uint8_t *bytes = program_bytes(info, offset, buffer, &len);

	*table = (struct line_table){ .info = info, .unit_folder = unit_folder };
	if (!bytes)
		return;
	p.c = (struct cursor){ .at = bytes, .end = bytes + len };
	buffer->rows.len = buffer->sequences.len = 0;
	buffer->unsorted = false;
	if (read_header(table, &p))
		run_program(table, &p, buffer);
	if (bytes == buffer->program.data)
		keep_names(table, bytes, len);
	if (!table->failed)
		line_table_sort(table, buffer);
}

void line_table_release(struct line_table *table)
{
	vec_free(&table->folders);
	vec_free(&table->files);
	arena_release(&table->names);
	if (table->owns_rows)
		free(table->rows);
}

/* ---- files ---- */

/* Folder of a file, then the file: each absolute, or relative to what comes before it. */
static uint32_t intern_path(struct line_table *table, const struct line_file *file)
{
	const char *folder = NULL;
	struct strbuf path = { 0 };
	uint32_t id = UINT32_MAX;

	if (file->folder < table->folders.len)
		folder = table->folders.data[file->folder];
	if (file->name[0] != '/') {
		if ((!folder || folder[0] != '/') && table->unit_folder)
			strbuf_printf(&path, "%s/", table->unit_folder);
		if (folder && folder[0])
			strbuf_printf(&path, "%s/", folder);
	}
	strbuf_puts(&path, file->name);
	if (!path.failed)
		id = dwarf_intern(table->info, path.data);
	strbuf_release(&path);
	return id;
}

const char *line_table_path(struct line_table *table, uint64_t number)
{
	struct line_file *file;

	if (number >= table->files.len || !table->files.data[number].name[0])
		return NULL;
	file = &table->files.data[number];
	if (file->id == UINT32_MAX)
		file->id = intern_path(table, file);
	return file->id == UINT32_MAX ? NULL : table->info->texts.strings.data[file->id].bytes;
}
