/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "split.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sections of a split file and their usual names. */
static const struct {
	const char *split, *plain;
} part_names[SPLIT_PARTS] = {
	[SPLIT_INFO] = { ".debug_info.dwo", ".debug_info" },
	[SPLIT_ABBREV] = { ".debug_abbrev.dwo", ".debug_abbrev" },
	[SPLIT_STR_OFFSETS] = { ".debug_str_offsets.dwo", ".debug_str_offsets" },
	[SPLIT_RNGLISTS] = { ".debug_rnglists.dwo", ".debug_rnglists" },
};

struct bytes {
	const uint8_t *data;
	size_t len;
};

/* What the skeleton says. */
struct skeleton {
	uint64_t id, addresses, ranges;
	uint64_t base; /* address that ranges are relative to */
	uint16_t version;
	const char *name, *folder;
};

static bool read_number(Dwarf_Die *die, unsigned int name, unsigned int older, uint64_t *value)
{
	Dwarf_Attribute attribute;
	Dwarf_Word word;

	if ((!dwarf_attr(die, name, &attribute) && !dwarf_attr(die, older, &attribute)) ||
	    dwarf_formudata(&attribute, &word))
		return false;
	*value = word;
	return true;
}

static const char *read_text(Dwarf_Die *die, unsigned int name, unsigned int older)
{
	Dwarf_Attribute attribute;

	if (!dwarf_attr(die, name, &attribute) && !dwarf_attr(die, older, &attribute))
		return NULL;
	return dwarf_formstring(&attribute);
}

static bool read_skeleton(struct skeleton *skeleton, Dwarf_Die *die)
{
	Dwarf_Addr low;

	*skeleton = (struct skeleton){
		.name = read_text(die, DW_AT_dwo_name, DW_AT_GNU_dwo_name),
		.folder = read_text(die, DW_AT_comp_dir, DW_AT_comp_dir),
	};
	if (!skeleton->name ||
	    dwarf_cu_info(die->cu, &skeleton->version, NULL, NULL, NULL, &skeleton->id, NULL, NULL))
		return false;
	if (skeleton->version < 5 &&
	    !read_number(die, DW_AT_GNU_dwo_id, DW_AT_GNU_dwo_id, &skeleton->id))
		return false;
	read_number(die, DW_AT_addr_base, DW_AT_GNU_addr_base, &skeleton->addresses);
	read_number(die, DW_AT_GNU_ranges_base, DW_AT_GNU_ranges_base, &skeleton->ranges);
	if (dwarf_lowpc(die, &low) == 0)
		skeleton->base = low;
	return true;
}

static void release(struct split *split)
{
	die_file_close(&split->file);
	memelf_release(&split->elf);
}

/* ---- the parts ---- */

static struct bytes section_of(struct image *image, const char *name)
{
	const struct image_section *section = image_section_by_name(image, name);
	struct spulse_error *error = NULL;
	struct bytes bytes = { 0 };

	if (section && image_section_bytes(image, section, &bytes.data, &bytes.len, &error) < 0) {
		log_debug("%s of %s: %s", name, image_path(image), spulse_error_message(error));
		spulse_error_free(error);
		return (struct bytes){ 0 };
	}
	return bytes;
}

/* A section of the program itself from an offset on. */
static struct bytes rest_of(const struct dwarf_info *info, const char *name, uint64_t offset)
{
	struct bytes bytes = { 0 };

	bytes.data = memelf_find(&info->elf, name, &bytes.len);
	if (bytes.data)
		memelf_touch(&info->elf, name, 0, bytes.len);
	if (!bytes.data || offset > bytes.len)
		return (struct bytes){ 0 };
	bytes.data += offset;
	bytes.len -= offset;
	return bytes;
}

/* As many addresses as the table that the base points into has; old tables do not say. */
static struct bytes addresses_of(const struct dwarf_info *info, const struct skeleton *skeleton)
{
	struct bytes bytes = rest_of(info, ".debug_addr", skeleton->addresses);

	if (skeleton->version >= 5 && skeleton->addresses >= 8 && bytes.data) {
		uint32_t length = load_u32(bytes.data - 8);

		if (length >= 4)
			bytes.len = MIN(bytes.len, (size_t)length - 4);
	}
	return bytes;
}

/*
 * Strings come by number: a table of offsets into a section that a package has for all of its
 * units. Only those that the table names are kept, with the table changed to fit.
 */
static bool gather_strings(const struct bytes *offsets, size_t header, const struct bytes *strings,
			   uint8_t *table, struct strbuf *kept)
{
	memcpy(table, offsets->data, offsets->len);
	for (size_t at = header; offsets->len - at >= 4; at += 4) {
		uint32_t offset = load_u32(offsets->data + at), place = kept->len;
		size_t len = 0;

		if (offset < strings->len)
			len = strnlen((const char *)strings->data + offset, strings->len - offset);
		if (kept->len > UINT32_MAX - len - 1)
			return false;
		if (len)
			strbuf_add(kept, (const char *)strings->data + offset, len);
		strbuf_putc(kept, 0);
		memcpy(table + at, &place, sizeof(place));
	}
	return !kept->failed;
}

struct gathered {
	struct bytes parts[SPLIT_PARTS], strings;
	uint8_t *table;
	struct strbuf kept;
};

static bool take_parts(struct gathered *g, struct image *file, const struct split_slice *slices)
{
	for (int i = 0; i < SPLIT_PARTS; i++) {
		g->parts[i] = section_of(file, part_names[i].split);
		if (!slices)
			continue;
		if (!slices[i].size || slices[i].offset > g->parts[i].len ||
		    slices[i].size > g->parts[i].len - slices[i].offset) {
			g->parts[i] = (struct bytes){ 0 };
			continue;
		}
		g->parts[i].data += slices[i].offset;
		g->parts[i].len = slices[i].size;
	}
	g->strings = section_of(file, ".debug_str.dwo");
	return g->parts[SPLIT_INFO].len && g->parts[SPLIT_ABBREV].len;
}

static bool compact_strings(struct gathered *g, uint16_t version)
{
	struct bytes *offsets = &g->parts[SPLIT_STR_OFFSETS];
	size_t header = version < 5 ? 0 : 8;

	/* Tables of 64-bit DWARF are left as they are. */
	if (offsets->len < header || !g->strings.data ||
	    (version >= 5 && load_u32(offsets->data) == UINT32_MAX))
		return true;
	g->table = malloc(offsets->len + 1);
	if (!g->table || !gather_strings(offsets, header, &g->strings, g->table, &g->kept))
		return false;
	offsets->data = g->table;
	g->strings = (struct bytes){ (const uint8_t *)g->kept.data, g->kept.len };
	return true;
}

static bool build(struct split *split, struct gathered *g, const struct dwarf_info *info,
		  const struct skeleton *skeleton, struct image *file)
{
	struct bytes addresses = addresses_of(info, skeleton);
	struct bytes ranges = rest_of(info, ".debug_ranges", skeleton->ranges);
	struct memelf_part parts[SPLIT_PARTS + 3];
	struct spulse_error *error = NULL;
	size_t n = 0;
	int r;

	if (!compact_strings(g, skeleton->version))
		return false;
	for (int i = 0; i < SPLIT_PARTS; i++)
		if (g->parts[i].len)
			parts[n++] = (struct memelf_part){ .name = part_names[i].plain,
							   .bytes = g->parts[i].data,
							   .len = g->parts[i].len };
	if (g->strings.len)
		parts[n++] = (struct memelf_part){ .name = ".debug_str",
						   .bytes = g->strings.data,
						   .len = g->strings.len };
	if (addresses.len)
		parts[n++] = (struct memelf_part){ .name = ".debug_addr",
						   .bytes = addresses.data,
						   .len = addresses.len };
	if (ranges.len && skeleton->version < 5)
		parts[n++] = (struct memelf_part){ .name = ".debug_ranges",
						   .bytes = ranges.data, .len = ranges.len };
	r = memelf_build(&split->elf, image_machine(file), parts, n, &error);
	spulse_error_free(error);
	return !r;
}

/* The unit of that id; a file may hold type units too. */
static bool find_unit(struct split *split, Dwarf *dwarf, const struct skeleton *skeleton)
{
	Dwarf_CU *unit = NULL, *next;
	Dwarf_Die die;
	uint64_t found;

	while (!dwarf_get_units(dwarf, unit, &next, NULL, NULL, &die, NULL)) {
		unit = next;
		if (dwarf_tag(&die) != DW_TAG_compile_unit)
			continue;
		found = 0;
		dwarf_cu_info(unit, NULL, NULL, NULL, NULL, &found, NULL, NULL);
		if (skeleton->version < 5)
			read_number(&die, DW_AT_GNU_dwo_id, DW_AT_GNU_dwo_id, &found);
		if (found != skeleton->id)
			continue;
		split->unit = die_file_find(&split->file, dwarf_dieoffset(&die));
		return split->unit != SIZE_MAX;
	}
	return false;
}

static bool open_unit(struct split *split, const struct skeleton *skeleton)
{
	/* Only the bytes matter to the reader: it needs no second set of sections. */
	struct dwarf_info alone = { .elf = split->elf };
	struct dwarf_reader reader;
	Dwarf *dwarf;
	bool done;

	if (!die_file_open(&split->file, &split->elf, true, skeleton->base))
		return false;
	dwarf_reader_open(&reader, &alone);
	dwarf = dwarf_reader_libdw(&reader);
	done = dwarf && find_unit(split, dwarf, skeleton);
	dwarf_reader_close(&reader);
	return done;
}

static bool open_parts(struct split *split, const struct dwarf_info *info,
		       const struct skeleton *skeleton, struct image *file,
		       const struct split_slice *slices)
{
	struct gathered gathered = { 0 };
	bool done = take_parts(&gathered, file, slices) &&
		    build(split, &gathered, info, skeleton, file);

	free(gathered.table);
	strbuf_release(&gathered.kept);
	if (done)
		done = open_unit(split, skeleton);
	if (!done)
		release(split);
	return done;
}

/* ---- places ---- */

static bool open_package(struct split *split, const struct dwarf_info *info,
			 const struct skeleton *skeleton, struct image *package)
{
	struct bytes index = section_of(package, ".debug_cu_index");
	struct split_slice slices[SPLIT_PARTS];

	return index.data && dwp_find(index.data, index.len, skeleton->id, slices) &&
	       open_parts(split, info, skeleton, package, slices);
}

static bool open_file(struct split *split, const struct dwarf_info *info,
		      const struct skeleton *skeleton, const char *root, const char *folder,
		      const char *name)
{
	struct strbuf path = { 0 };
	struct image *file = NULL;
	bool done = false;

	strbuf_printf(&path, "%s%s%s%s", root ? root : "", folder ? folder : "",
		      folder ? "/" : "", name);
	if (!path.failed && !image_open_path(path.data, &file, NULL))
		done = open_parts(split, info, skeleton, file, NULL);
	image_unref(file);
	strbuf_release(&path);
	return done;
}

/* Where the compiler left it; then beside the program, which may have been moved with it. */
static bool open_anywhere(struct split *split, const struct dwarf_info *info,
			  const struct skeleton *skeleton, const struct split_places *places)
{
	const char *slash = strrchr(skeleton->name, '/');

	if (skeleton->name[0] == '/') {
		if (open_file(split, info, skeleton, places->sysroot, NULL, skeleton->name))
			return true;
	} else if (skeleton->folder && open_file(split, info, skeleton, places->sysroot,
						 skeleton->folder, skeleton->name)) {
		return true;
	} else if (places->folder && open_file(split, info, skeleton, places->sysroot,
					       places->folder, skeleton->name)) {
		return true;
	}
	return slash && places->folder &&
	       open_file(split, info, skeleton, places->sysroot, places->folder, slash + 1);
}

static bool open_places(struct split *split, const struct dwarf_info *info,
			const struct skeleton *skeleton, const struct split_places *places)
{
	if (places->package && open_package(split, info, skeleton, places->package))
		return true;
	return open_anywhere(split, info, skeleton, places);
}

struct split *split_open(const struct dwarf_info *info, struct dwarf_reader *reader,
			 uint64_t offset, const struct split_places *places, const char **why)
{
	Dwarf *dwarf = dwarf_reader_libdw(reader);
	struct split *split = calloc(1, sizeof(*split));
	struct skeleton skeleton;
	Dwarf_Die die;

	*why = "files of split DWARF (.dwo) are missing";
	if (!dwarf || !dwarf_offdie(dwarf, offset, &die) || !read_skeleton(&skeleton, &die))
		*why = "a unit does not say where its functions are";
	else if (split && open_places(split, info, &skeleton, places))
		return split;
	free(split);
	return NULL;
}

void split_free(struct split *split)
{
	if (!split)
		return;
	release(split);
	free(split);
}
