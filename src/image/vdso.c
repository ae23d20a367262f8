/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The vDSO has no file. This process's own copy is read from its memory; the kernel maps the same
 * bytes into every process of the same word size.
 */
#include "elfimage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>

#include "../proc/proc.h"

enum { VDSO_MAX = 16 << 20, MAPS_MAX = 64 << 20 };

static const char vdso_name[] = "[vdso]";

static bool is_vdso(const struct proc_map *map)
{
	return map->path_len == strlen(vdso_name) && strcmp(map->path, vdso_name) == 0;
}

static bool find_vdso(uint64_t *start, uint64_t *len)
{
	struct proc_maps maps = {0};
	struct strbuf text = {0};
	bool found = false;

	if (read_file("/proc/self/maps", MAPS_MAX, &text) == 0 &&
	    proc_maps_parse(&maps, text.data, text.len)) {
		for (size_t i = 0; i < maps.maps.len && !found; i++) {
			const struct proc_map *map = &maps.maps.data[i];

			if (!is_vdso(map))
				continue;
			*start = map->start;
			*len = map->end - map->start;
			found = true;
		}
	}
	proc_maps_release(&maps);
	strbuf_release(&text);
	return found;
}

/* Where /proc/PID/mem may not be opened (not dumpable), the other door may still be open. */
static bool read_memory(pid_t pid, uint64_t start, void *buf, size_t len)
{
	struct iovec local = {buf, len}, remote = {(void *)(uintptr_t)start, len};
	_cleanup_close_ int fd = -1;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	fd = open(pid == getpid() ? "/proc/self/mem" : path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && pread_full(fd, buf, len, start) == (ssize_t)len)
		return true;
	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)len;
}

int image_vdso_new(struct image **image_out, struct spulse_error **err)
{
	uint64_t start, len;
	uint8_t *bytes;
	int r;

	if (!find_vdso(&start, &len))
		return err_set(err, SPULSE_ERROR_UNSUPPORTED, "this process has no vDSO");
	if (len > VDSO_MAX)
		return err_set(err, SPULSE_ERROR_UNSUPPORTED, "the vDSO is %llu bytes long",
			       (unsigned long long)len);
	bytes = malloc(len);
	if (!bytes)
		return err_no_memory(err);
	if (!read_memory(getpid(), start, bytes, len)) {
		free(bytes);
		return err_set(err, SPULSE_ERROR_IO, "cannot read the vDSO of this process");
	}
	if ((r = image_new_bytes(bytes, len, vdso_name, image_out, err)) < 0)
		return r;
	(*image_out)->vdso = true;
	return 0;
}

bool image_equals_memory(const struct image *image, pid_t pid, uint64_t start, uint64_t end)
{
	_cleanup_free_ uint8_t *bytes = NULL;

	if (!image->bytes || end <= start || end - start != image->size)
		return false;
	bytes = malloc(image->size);
	return bytes && read_memory(pid, start, bytes, image->size) &&
	       memcmp(bytes, image->bytes, image->size) == 0;
}
