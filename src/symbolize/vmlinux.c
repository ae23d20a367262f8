/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Source lines and inlined calls of the kernel itself, when its uncompressed image with debug
 * information is here. Kernel symbols name the function in any case; the image adds to that only
 * where it agrees: its build ID is the running (or recorded) kernel's, and it finds the function
 * of that name at the same distance.
 */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "symbolizer.h"

enum { TRIES_MAX = 64 }; /* names that several functions have say nothing of where they are */

/* ---- which kernel it was ---- */

static const char *recorded(const struct spulse_symbolizer *sym, const char *key)
{
	size_t count;
	const struct spulse_annotation *list;

	if (!sym->source)
		return NULL;
	list = spulse_source_annotations(sym->source, &count);
	for (size_t i = 0; i < count; i++)
		if (list[i].pid == -1 && !strcmp(list[i].key, key))
			return list[i].value;
	return NULL;
}

static bool wanted_build_id(const struct spulse_symbolizer *sym, struct strbuf *hex)
{
	const char *known = recorded(sym, "kernel-build-id");

	if (known) {
		strbuf_puts(hex, known);
		return hex->len && !hex->failed;
	}
	return sym->kernel_source == SPULSE_KERNEL_SYMBOLS_HOST && image_running_kernel_id(hex);
}

/* ---- where its image is ---- */

static bool has_build_id(const struct image *image, const char *hex)
{
	size_t len;
	const uint8_t *id = image_build_id(image, &len);
	char own[3];

	if (!id || strlen(hex) != 2 * len)
		return false;
	for (size_t i = 0; i < len; i++) {
		snprintf(own, sizeof(own), "%02x", id[i]);
		if (strncasecmp(own, hex + 2 * i, 2))
			return false;
	}
	return true;
}

SPULSE_PRINTF(3, 4)
static struct image *try_image(const struct spulse_symbolizer *sym, const char *build_id,
			       const char *format, ...)
{
	struct strbuf path = { 0 };
	struct image *image = NULL;
	va_list args;

	strbuf_puts(&path, sym->sysroot ? sym->sysroot : "");
	va_start(args, format);
	strbuf_vprintf(&path, format, args);
	va_end(args);
	if (!path.failed && image_open_path(path.data, &image, NULL) >= 0 &&
	    !has_build_id(image, build_id)) {
		log_debug("%s is another kernel's", path.data);
		image_unref(image);
		image = NULL;
	}
	strbuf_release(&path);
	return image;
}

static struct image *try_roots(const struct spulse_symbolizer *sym, const char *build_id)
{
	const struct image_roots *roots = native_store_roots(sym->store);
	struct image *image = NULL;

	for (size_t i = 0; roots && i < roots->paths.len && !image; i++)
		image = try_image(sym, build_id, "%s/.build-id/%.2s/%s.debug", roots->paths.data[i],
				  build_id, build_id + 2);
	return image;
}

static struct image *find_image(const struct spulse_symbolizer *sym, const char *build_id)
{
	static const char *const places[] = {
		"/usr/lib/debug/boot/vmlinux-%s", "/usr/lib/debug/lib/modules/%s/vmlinux",
		"/usr/lib/debug/usr/lib/modules/%s/vmlinux", "/lib/modules/%s/vmlinux",
		"/lib/modules/%s/build/vmlinux", "/boot/vmlinux-%s",
	};
	const char *release = recorded(sym, "kernel");
	struct image *image = try_roots(sym, build_id);
	struct utsname here;
	char path[512];

	if (!release && uname(&here) == 0)
		release = here.release;
	if (!release || strchr(release, '/'))
		return image;
	for (size_t i = 0; i < sizeof(places) / sizeof(*places) && !image; i++) {
		snprintf(path, sizeof(path), places[i], release);
		image = try_image(sym, build_id, "%s", path);
	}
	return image;
}

static void open_vmlinux(struct spulse_symbolizer *sym)
{
	struct strbuf build_id = { 0 };
	struct image *image = NULL;
	struct module_facts facts = { .end = UINT64_MAX };

	sym->vmlinux_tried = true;
	if (!native_is_builtin(sym->backend))
		return;
	if (wanted_build_id(sym, &build_id) && build_id.len > 2)
		image = find_image(sym, build_id.data);
	if (image) {
		facts.path = image_path(image);
		facts.path_len = strlen(facts.path);
		facts.mapping_id = UINT64_MAX;
		log_debug("lines of the kernel are read from %s", facts.path);
		sym->vmlinux = native_module_make(&facts, image, 0, sym->store);
	}
	strbuf_release(&build_id);
}

/* ---- how far it was moved ---- */

struct named_symbol {
	const char *name;
	uint64_t value;
	size_t count;
};

static bool match_name(void *data, const struct image_symbol *symbol)
{
	struct named_symbol *wanted = data;

	if (symbol->shndx && !strcmp(symbol->name, wanted->name)) {
		wanted->count += !wanted->count || wanted->value != symbol->value;
		wanted->value = symbol->value;
	}
	return true;
}

/* From a name that only one function has. */
static bool find_slide(struct spulse_symbolizer *sym, uint64_t address,
		       const struct kernel_hit *hit)
{
	struct named_symbol wanted = { .name = hit->name };

	if (sym->vmlinux_tries++ >= TRIES_MAX ||
	    image_symbols(sym->vmlinux->image, false, match_name, &wanted, NULL) < 0 ||
	    wanted.count != 1)
		return false;
	sym->vmlinux_slide = address - hit->offset - wanted.value;
	sym->vmlinux_placed = !(sym->vmlinux_slide & 0xfff);
	return sym->vmlinux_placed;
}

/* Whether the function that the image has there begins where the kernel says. */
static bool agrees(const struct spulse_native_results *results, const struct kernel_hit *hit)
{
	uint32_t at = results->chains[0].first;

	while (at != UINT32_MAX && results->entries.data[at].next != UINT32_MAX)
		at = results->entries.data[at].next;
	return at != UINT32_MAX && results->entries.data[at].symbol.offset == hit->offset;
}

const struct spulse_native_results *
vmlinux_lookup(struct spulse_symbolizer *sym, uint64_t address, const struct kernel_hit *hit)
{
	struct spulse_native_results *results = &sym->vmlinux_results;
	struct spulse_native_lookup lookup = { .pid = 1, .address = address };
	const struct spulse_native_lookup *lookups = &lookup;

	if (strcmp(hit->module, "[kernel]") || !sym->backend)
		return NULL;
	if (!sym->vmlinux_tried)
		open_vmlinux(sym);
	if (!sym->vmlinux || (!sym->vmlinux_placed && !find_slide(sym, address, hit)))
		return NULL;
	lookup.module = sym->vmlinux;
	lookup.relative = lookup.image_address = address - sym->vmlinux_slide;
	if (!results_reset(results, 1))
		return NULL;
	results->borrows = true;
	if (spulse_native_default()->symbolize(NULL, &lookups, 1, results, NULL) < 0 ||
	    !agrees(results, hit))
		return NULL;
	return results;
}
