/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Search for debug information outside an image. Every place is noted with what became of it, so
 * that a user can be told why a function has no name. A file found by its name alone proves
 * nothing: wrong names are worse than none.
 */
#include "debugfile.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>

#include "debuglink.h"
#include "image.h"
#include "minidebug.h"

enum { TEXT_COMPARED = 4096 };

struct search {
	struct image *image;
	const struct image_debug_options *options;
	struct image_debug *debug;
	char *path;	   /* recorded, below the sysroot, without " (deleted)" */
	const char *base;  /* its last part */
	char *dir;	   /* without it, "" for the root */
	bool no_memory;
};

/* How a candidate is proved to be the one. */
struct proof {
	const uint8_t *build_id; /* or NULL */
	size_t build_id_len;
	const uint32_t *crc;	 /* of a debug link, or NULL */
	struct image *same_text; /* last resort when nobody has a build ID, or NULL */
};

const char *image_debug_kind_name(enum image_debug_kind kind)
{
	switch (kind) {
	case IMAGE_DEBUG_FILE:
		return "debug file";
	case IMAGE_DEBUG_MINI:
		return "mini debug information";
	case IMAGE_DEBUG_ALT:
		return "shared debug file";
	case IMAGE_DEBUG_PACKAGE:
		return "split DWARF package";
	}
	return "unknown";
}

static void note(struct search *s, enum image_debug_kind kind, const char *path, const char *reason)
{
	struct image_debug_try try = {kind, strdup(path), reason ? strdup(reason) : NULL};

	if (try.path && (!reason || try.reason) && vec_push(&s->debug->tries, try))
		return;
	free(try.path);
	free(try.reason);
	s->no_memory = true;
}

static bool has_section(const struct image *image, const char *name)
{
	const struct image_section *section = image_section_by_name(image, name);

	return section && section->type != SHT_NOBITS && section->size > 0;
}

static bool has_dwarf(const struct image *image)
{
	return has_section(image, ".debug_info");
}

static bool same_file(const struct image *a, const struct image *b)
{
	const struct image_identity *x = image_identity(a), *y = image_identity(b);

	return x->inode != 0 && x->inode == y->inode && x->dev_major == y->dev_major &&
	       x->dev_minor == y->dev_minor;
}

static bool text_start(struct image *image, uint8_t *bytes, size_t *len)
{
	const struct image_section *text = image_section_by_name(image, ".text");

	if (!text || text->type == SHT_NOBITS || text->size == 0)
		return false;
	*len = MIN(text->size, TEXT_COMPARED);
	return image_read(image, text->offset, bytes, *len, NULL) == 0;
}

static bool same_text(struct image *a, struct image *b)
{
	uint8_t x[TEXT_COMPARED], y[TEXT_COMPARED];
	size_t x_len, y_len;

	return text_start(a, x, &x_len) && text_start(b, y, &y_len) && x_len == y_len &&
	       memcmp(x, y, x_len) == 0;
}

/* NULL when proved. */
static const char *disprove(struct image *found, const struct proof *proof)
{
	size_t len;
	const uint8_t *id = image_build_id(found, &len);
	uint32_t crc;

	if (id && proof->build_id)
		return len == proof->build_id_len && memcmp(id, proof->build_id, len) == 0 ?
			       NULL :
			       "another build ID";
	if (proof->crc) {
		if (!debuglink_checksum(found, &crc))
			return "its checksum cannot be computed";
		return crc == *proof->crc ? NULL : "another checksum";
	}
	if (proof->build_id)
		return "it has no build ID";
	if (proof->same_text && !id && same_text(found, proof->same_text))
		return NULL;
	return "the image has no build ID to prove that it belongs to it";
}

static const char *useless(const struct search *s, const struct image *found,
			   enum image_debug_kind kind)
{
	if (kind == IMAGE_DEBUG_PACKAGE)
		return has_section(found, ".debug_info.dwo") ? NULL : "no package of split DWARF";
	if (same_file(found, s->image))
		return "the image itself";
	if (has_dwarf(found) || has_section(found, ".symtab"))
		return NULL;
	if (kind == IMAGE_DEBUG_ALT && has_section(found, ".debug_str"))
		return NULL;
	return "neither symbols nor DWARF in it";
}

/* Opens and checks one place; notes it. */
static struct image *try_path(struct search *s, enum image_debug_kind kind, const char *path,
			      const struct proof *proof)
{
	struct spulse_error *error = NULL;
	struct image *found = NULL;
	const char *reason;

	if (image_open_path(path, &found, &error) < 0) {
		int errnum = spulse_error_errno(error);

		note(s, kind, path, errnum ? strerror(errnum) : spulse_error_message(error));
		spulse_error_free(error);
		return NULL;
	}
	reason = useless(s, found, kind);
	if (!reason && proof)
		reason = disprove(found, proof);
	note(s, kind, path, reason);
	if (!reason)
		return found;
	image_unref(found);
	return NULL;
}

/* A path made of parts. */
SPULSE_PRINTF(4, 5)
static struct image *try_format(struct search *s, enum image_debug_kind kind,
				const struct proof *proof, const char *format, ...)
{
	struct image *found;
	char *path;
	va_list args;
	int n;

	va_start(args, format);
	n = vasprintf(&path, format, args);
	va_end(args);
	if (n < 0) {
		s->no_memory = true;
		return NULL;
	}
	found = try_path(s, kind, path, proof);
	free(path);
	return found;
}

static size_t root_count(const struct search *s)
{
	return s->options->roots ? s->options->roots->paths.len : 0;
}

static const char *root_at(const struct search *s, size_t i)
{
	return s->options->roots->paths.data[i];
}

static const char *sysroot_of(const struct search *s)
{
	return s->options->sysroot ? s->options->sysroot : "";
}

static struct image *try_build_id(struct search *s, enum image_debug_kind kind,
				  const uint8_t *build_id, size_t len)
{
	struct proof proof = {.build_id = build_id, .build_id_len = len};
	struct image *found = NULL;
	char hex[2 * 64 + 1];

	if (len < 2 || len > 64)
		return NULL;
	for (size_t i = 1; i < len; i++)
		snprintf(hex + 2 * (i - 1), 3, "%02x", build_id[i]);
	for (size_t i = 0; i < root_count(s) && !found; i++) {
		const char *root = root_at(s, i);

		if (*sysroot_of(s))
			found = try_format(s, kind, &proof, "%s%s/.build-id/%02x/%s.debug",
					   sysroot_of(s), root, build_id[0], hex);
		if (!found)
			found = try_format(s, kind, &proof, "%s/.build-id/%02x/%s.debug", root,
					   build_id[0], hex);
	}
	return found;
}

static struct image *try_debuglink(struct search *s, const struct proof *plain)
{
	struct proof proof = *plain;
	struct debuglink link;
	struct image *found;
	const char *recorded_dir = s->dir + strlen(sysroot_of(s));

	if (!debuglink_read(s->image, &link))
		return NULL;
	proof.crc = &link.crc;
	found = try_format(s, IMAGE_DEBUG_FILE, &proof, "%s/%s", s->dir, link.name);
	if (!found)
		found = try_format(s, IMAGE_DEBUG_FILE, &proof, "%s/.debug/%s", s->dir, link.name);
	for (size_t i = 0; i < root_count(s) && !found; i++)
		found = try_format(s, IMAGE_DEBUG_FILE, &proof, "%s%s/%s", root_at(s, i),
				   recorded_dir, link.name);
	return found;
}

static struct image *try_server(struct search *s, const struct proof *proof)
{
	struct strbuf reason = {0};
	struct image *found = NULL;
	int r;

	if (!s->options->debuginfod || !proof->build_id)
		return NULL;
	r = image_debuginfod_fetch(proof->build_id, proof->build_id_len, false, s->options, &found,
				   &reason);
	note(s, IMAGE_DEBUG_FILE, r > 0 ? image_path(found) : "debuginfod",
	     r > 0 ? NULL : reason.data ? reason.data : "out of memory");
	strbuf_release(&reason);
	return found;
}

static struct image *find_file(struct search *s)
{
	struct proof proof = {.same_text = s->image};
	struct image *found;

	proof.build_id = image_build_id(s->image, &proof.build_id_len);
	found = try_build_id(s, IMAGE_DEBUG_FILE, proof.build_id, proof.build_id_len);
	if (!found)
		found = try_debuglink(s, &proof);
	if (!found)
		found = try_format(s, IMAGE_DEBUG_FILE, &proof, "%s.dbg", s->path);
	for (size_t i = 0; i < root_count(s) && !found; i++)
		found = try_format(s, IMAGE_DEBUG_FILE, &proof, "%s/%s", root_at(s, i), s->base);
	return found ? found : try_server(s, &proof);
}

static void find_mini(struct search *s)
{
	struct spulse_error *error = NULL;
	int r = minidebug_open(s->image, &s->debug->mini, &error);

	if (r != 0)
		note(s, IMAGE_DEBUG_MINI, image_path(s->image),
		     r < 0 ? spulse_error_message(error) : NULL);
	spulse_error_free(error);
}

static size_t dir_length(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash - path : 0;
}

/* A shared file's path is relative to the file that names it, which may be reached by a link. */
static struct image *try_relative_alt(struct search *s, struct image *holder, const char *name,
				      const struct proof *proof)
{
	const char *dir = holder == s->image ? s->path : image_path(holder);
	_cleanup_free_ char *real = holder == s->image ? NULL : realpath(dir, NULL);
	struct image *found = try_format(s, IMAGE_DEBUG_ALT, proof, "%.*s/%s",
					 (int)dir_length(dir), dir, name);

	if (!found && real && strcmp(real, dir) != 0)
		found = try_format(s, IMAGE_DEBUG_ALT, proof, "%.*s/%s", (int)dir_length(real),
				   real, name);
	return found;
}

/* What the file with the DWARF shares with others. */
static struct image *find_alt(struct search *s, struct image *holder)
{
	struct debuglink link;
	struct proof proof = {0};
	struct image *found;

	if (!debuglink_read_alt(holder, &link))
		return NULL;
	proof.build_id = link.build_id;
	proof.build_id_len = link.build_id_len;
	if (link.name[0] == '/')
		found = try_format(s, IMAGE_DEBUG_ALT, &proof, "%s%s", sysroot_of(s), link.name);
	else
		found = try_relative_alt(s, holder, link.name, &proof);
	return found ? found : try_build_id(s, IMAGE_DEBUG_ALT, link.build_id, link.build_id_len);
}

/* Only units that leave their bulk elsewhere have an address table beside their DWARF. */
static struct image *find_package(struct search *s, struct image *holder)
{
	struct image *found;

	if (!has_section(holder, ".debug_addr"))
		return NULL;
	found = try_format(s, IMAGE_DEBUG_PACKAGE, NULL, "%s.dwp", s->path);
	if (!found && holder != s->image)
		found = try_format(s, IMAGE_DEBUG_PACKAGE, NULL, "%s.dwp", image_path(holder));
	return found;
}

static bool search_init(struct search *s, struct image *image,
			const struct image_debug_options *options, struct image_debug *debug)
{
	static const char deleted[] = " (deleted)";
	const char *path = options->path ? options->path : image_path(image);
	const char *sysroot = options->sysroot ? options->sysroot : "";
	size_t len = strlen(path), suffix = strlen(deleted);

	*s = (struct search){.image = image, .options = options, .debug = debug};
	if (len > suffix && strcmp(path + len - suffix, deleted) == 0)
		len -= suffix;
	if (asprintf(&s->path, "%s%.*s", sysroot, (int)len, path) < 0) {
		s->path = NULL;
		return false;
	}
	s->base = s->path + dir_length(s->path);
	s->base += *s->base == '/';
	s->dir = strndup(s->path, dir_length(s->path));
	return s->dir != NULL;
}

static void run(struct search *s)
{
	struct image *holder = s->image;

	if (!has_dwarf(s->image)) {
		s->debug->file = find_file(s);
		if (s->debug->file)
			holder = s->debug->file;
		else if (!s->options->file_only)
			find_mini(s);
	}
	if (s->options->file_only)
		return;
	s->debug->alt = find_alt(s, holder);
	s->debug->package = find_package(s, holder);
}

int image_debug_find(struct image *image, const struct image_debug_options *options,
		     struct image_debug *debug, struct spulse_error **err)
{
	struct search s;
	bool ok;

	memset(debug, 0, sizeof(*debug));
	ok = search_init(&s, image, options, debug);
	if (ok)
		run(&s);
	ok = ok && !s.no_memory;
	free(s.path);
	free(s.dir);
	if (ok)
		return 0;
	image_debug_release(debug);
	return err_no_memory(err);
}

void image_debug_release(struct image_debug *debug)
{
	for (size_t i = 0; i < debug->tries.len; i++) {
		free(debug->tries.data[i].path);
		free(debug->tries.data[i].reason);
	}
	vec_free(&debug->tries);
	image_unref(take_ptr(debug->file));
	image_unref(take_ptr(debug->mini));
	image_unref(take_ptr(debug->alt));
	image_unref(take_ptr(debug->package));
}
