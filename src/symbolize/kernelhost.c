/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Where kernel symbols come from on this host, and what is kept of them for the whole process:
 * reading /proc/kallsyms costs the kernel tens of milliseconds.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernel.h"

static const char kallsyms_path[] = "/proc/kallsyms";

/* One remembered sparse table. */
struct sparse_entry {
	uint64_t *addresses, *anchors;
	size_t count, anchor_count;
	struct kernel_table *table;
};

enum { SPARSE_ENTRIES = 16 };

static struct {
	pthread_mutex_t lock;
	struct sparse_entry sparse[SPARSE_ENTRIES]; /* a ring: the oldest is replaced */
	size_t next;
	struct kernel_table *full;
	bool full_read;
	bool warned;
} host = { .lock = PTHREAD_MUTEX_INITIALIZER };

void kernel_warn_once(int errnum)
{
	if (__atomic_exchange_n(&host.warned, true, __ATOMIC_RELAXED))
		return;
	if (errnum)
		log_warning("%s cannot be read (%s): kernel frames have no names", kallsyms_path,
			    strerror(errnum));
	else
		log_warning("%s hides its addresses: kernel frames have no names (see "
			    "kernel.kptr_restrict)", kallsyms_path);
}

int kernel_file_open(const char *path, struct spulse_error **err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	struct stat st;
	int r;

	if (fd < 0) {
		if (errno == ELOOP)
			return err_file(err, SPULSE_ERROR_INVALID_INPUT, errno, path,
					"kernel symbol file '%s' is a symbolic link", path);
		return err_io(err, errno, path, "cannot open kernel symbol file '%s'", path);
	}
	if (fstat(fd, &st) < 0)
		r = err_io(err, errno, path, "cannot examine kernel symbol file '%s'", path);
	else if (!S_ISREG(st.st_mode))
		r = err_file(err, SPULSE_ERROR_INVALID_INPUT, 0, path,
			     "kernel symbol file '%s' is not a regular file", path);
	else if (st.st_size > KERNEL_FILE_MAX)
		r = err_file(err, SPULSE_ERROR_IO, EFBIG, path,
			     "kernel symbol file '%s' is larger than 64 MiB", path);
	else
		return fd;
	close(fd);
	return r;
}

int kernel_table_read(int fd, struct kernel_table **table_out)
{
	struct strbuf text = { 0 };
	int r = read_fd(fd, KERNEL_FILE_MAX, &text);

	if (!r) {
		*table_out = kernel_table_take(&text);
		r = *table_out ? 0 : -ENOMEM;
	}
	strbuf_release(&text);
	return r;
}

int kernel_table_load(const char *path, struct kernel_table **table_out,
		      struct spulse_error **err)
{
	int fd = kernel_file_open(path, err), r;

	if (fd < 0)
		return fd;
	r = kernel_table_read(fd, table_out);
	close(fd);
	if (r == -ENOMEM)
		return err_no_memory(err);
	return r < 0 ? err_io(err, -r, path, "cannot read kernel symbol file '%s'", path) : 0;
}

static bool same_values(const uint64_t *a, size_t a_count, const uint64_t *b, size_t b_count)
{
	return a_count == b_count && (!a_count || !memcmp(a, b, a_count * sizeof(*a)));
}

static struct kernel_table *sparse_recall(const uint64_t *addresses, size_t count,
					  const uint64_t *anchors, size_t anchor_count)
{
	for (size_t i = 0; i < SPARSE_ENTRIES; i++) {
		const struct sparse_entry *e = &host.sparse[i];

		if (e->table && same_values(e->addresses, e->count, addresses, count) &&
		    same_values(e->anchors, e->anchor_count, anchors, anchor_count))
			return kernel_table_ref(e->table);
	}
	return NULL;
}

static uint64_t *copy_values(const uint64_t *values, size_t count)
{
	uint64_t *copy = malloc((count + 1) * sizeof(*copy));

	if (copy && count)
		memcpy(copy, values, count * sizeof(*copy));
	return copy;
}

static void sparse_remember(const uint64_t *addresses, size_t count, const uint64_t *anchors,
			    size_t anchor_count, struct kernel_table *table)
{
	struct sparse_entry entry = {
		.addresses = copy_values(addresses, count),
		.anchors = copy_values(anchors, anchor_count),
		.count = count,
		.anchor_count = anchor_count,
	};
	struct sparse_entry *place = &host.sparse[host.next];

	if (!entry.addresses || !entry.anchors) {
		free(entry.addresses);
		free(entry.anchors);
		return;
	}
	entry.table = kernel_table_ref(table);
	free(place->addresses);
	free(place->anchors);
	kernel_table_unref(place->table);
	*place = entry;
	host.next = (host.next + 1) % SPARSE_ENTRIES;
}

static struct kernel_table *sparse_read(const uint64_t *addresses, size_t count,
					const uint64_t *anchors, size_t anchor_count)
{
	struct kernel_table *table = NULL, *from_map;
	int fd = open(kallsyms_path, O_RDONLY | O_CLOEXEC);
	int r = fd < 0 ? -errno : kernel_table_scan(fd, addresses, count, &table);

	if (fd >= 0)
		close(fd);
	if (!r && table->count)
		return table;
	from_map = sysmap_lookup(addresses, count, anchors, anchor_count);
	if (from_map) {
		kernel_table_unref(table);
		return from_map;
	}
	kernel_warn_once(-r);
	return table;
}

struct kernel_table *kernel_host_sparse(const uint64_t *addresses, size_t count,
					const uint64_t *anchors, size_t anchor_count)
{
	struct kernel_table *table;

	if (!count)
		return NULL;
	pthread_mutex_lock(&host.lock);
	table = sparse_recall(addresses, count, anchors, anchor_count);
	if (!table) {
		table = sparse_read(addresses, count, anchors, anchor_count);
		if (table)
			sparse_remember(addresses, count, anchors, anchor_count, table);
	}
	pthread_mutex_unlock(&host.lock);
	return table;
}

struct kernel_table *kernel_host_full(void)
{
	struct kernel_table *table;

	pthread_mutex_lock(&host.lock);
	if (!host.full_read) {
		struct strbuf text = { 0 };
		int r = read_file(kallsyms_path, KERNEL_FILE_MAX, &text);

		if (r >= 0)
			host.full = kernel_table_take(&text);
		strbuf_release(&text);
		if (host.full && !host.full->count) {
			kernel_table_unref(host.full);
			host.full = NULL;
		}
		if (!host.full)
			kernel_warn_once(r < 0 ? -r : 0);
		host.full_read = true;
	}
	table = kernel_table_ref(host.full);
	pthread_mutex_unlock(&host.lock);
	return table;
}
