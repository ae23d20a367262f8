/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A symbolizer's kernel symbols: of this host or of a given file, and only of the addresses that
 * its source has where those are known.
 */
#include "symbolizer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "keysort.h"

struct addresses {
	uint64_t *data;
	size_t len, cap;
};

/* False when memory ran out. */
static bool sort_unique(struct addresses *list)
{
	struct sort_key *keys = malloc((list->len + 1) * 2 * sizeof(*keys)), *sorted;
	size_t kept = 0;

	if (!keys)
		return false;
	for (size_t i = 0; i < list->len; i++)
		keys[i] = (struct sort_key){ list->data[i], i };
	sorted = sort_keys(keys, keys + list->len, list->len);
	for (size_t i = 0; i < list->len; i++)
		if (!kept || list->data[kept - 1] != sorted[i].key)
			list->data[kept++] = sorted[i].key;
	list->len = kept;
	free(keys);
	return true;
}

static bool is_text_module(const struct spulse_module *module)
{
	const char *path = spulse_module_path(module);
	size_t len = spulse_module_path_len(module);
	static const char vmlinux[] = "/vmlinux";

	if (strstr(path, "kernel.kallsyms") || strstr(path, "_text") || !strcmp(path, "[kernel]"))
		return true;
	return len >= sizeof(vmlinux) - 1 && !strcmp(path + len - (sizeof(vmlinux) - 1), vmlinux);
}

/* Where the recording saw the kernel's text: what a System.map is moved to. */
static bool collect_anchors(const struct spulse_source *source, struct addresses *anchors)
{
	size_t n = spulse_source_module_count(source);

	for (size_t i = 0; i < n; i++) {
		const struct spulse_module *module = spulse_source_module(source, i);
		uint64_t start = spulse_module_start(module);
		uint64_t offset = spulse_module_file_offset(module);

		if (!spulse_module_is_kernel(module) || !is_text_module(module))
			continue;
		if (!vec_push(anchors, start) || (offset && !vec_push(anchors, start - offset)))
			return false;
	}
	return sort_unique(anchors);
}

/* Kernel addresses of all stacks that a source has. */
static bool collect_addresses(const struct spulse_source *source, struct addresses *addresses)
{
	size_t position = 0;
	uint64_t address;

	while (spulse_source_next_kernel_address(source, &position, &address))
		if (!vec_push(addresses, address))
			return false;
	return sort_unique(addresses);
}

static struct kernel_table *load_sparse(const struct spulse_source *source)
{
	struct addresses addresses = { 0 }, anchors = { 0 };
	struct kernel_table *table = NULL;

	if (collect_anchors(source, &anchors) && collect_addresses(source, &addresses))
		table = kernel_host_sparse(addresses.data, addresses.len, anchors.data,
					   anchors.len);
	vec_free(&addresses);
	vec_free(&anchors);
	return table;
}

/* Whether the recording says that another kernel ran: this host's symbols are none of its. */
static bool is_other_kernel(const struct spulse_source *source)
{
	size_t count;
	const struct spulse_annotation *list = spulse_source_annotations(source, &count);
	struct utsname here;

	if (uname(&here) < 0)
		return false;
	for (size_t i = 0; i < count; i++)
		if (list[i].pid == -1 && !strcmp(list[i].key, "kernel"))
			return strcmp(list[i].value, here.release) != 0;
	return false;
}

static void load_host(struct spulse_symbolizer *sym)
{
	if (sym->source && is_other_kernel(sym->source))
		return;
	if (!sym->source || sym->live)
		sym->kernel = kernel_host_full();
	if (!sym->kernel && sym->source)
		sym->kernel = load_sparse(sym->source);
}

/* A given file: what a source has needs few of its names. */
static void load_file(struct spulse_symbolizer *sym, bool whole)
{
	struct addresses addresses = { 0 };
	struct kernel_table *table = NULL;
	int r = lseek(sym->kernel_fd, 0, SEEK_SET) < 0 ? -errno : 0;

	if (r < 0 || whole)
		r = r ? r : kernel_table_read(sym->kernel_fd, &table);
	else if (collect_addresses(sym->source, &addresses))
		r = kernel_table_scan(sym->kernel_fd, addresses.data, addresses.len, &table);
	else
		r = -ENOMEM;
	if (r < 0)
		log_warning("the kernel symbol file cannot be read (%s)", strerror(-r));
	vec_free(&addresses);
	kernel_table_unref(sym->kernel);
	sym->kernel = table;
}

bool symbolizer_kernel(struct spulse_symbolizer *sym, uint64_t address, struct kernel_hit *hit)
{
	bool file = sym->kernel_source == SPULSE_KERNEL_SYMBOLS_FILE;

	if (!sym->kernel_loaded) {
		sym->kernel_loaded = true;
		if (file)
			load_file(sym, !sym->source || sym->live);
		else if (sym->kernel_source == SPULSE_KERNEL_SYMBOLS_HOST)
			load_host(sym);
	}
	if (kernel_table_find(sym->kernel, address, hit))
		return true;
	/* Of another source's stack, or one that came later. */
	if (!file || !sym->kernel || kernel_table_covers(sym->kernel, address))
		return false;
	load_file(sym, true);
	return kernel_table_find(sym->kernel, address, hit);
}
