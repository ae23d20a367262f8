/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "../driver.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbolize/kernel.h"

static const uint64_t asked[] = { 1, 0xffffffff81000000, 0xffffffff81000123, 0xffffffffc0000010,
				  UINT64_MAX };

static void check_hit(const struct kernel_table *table, uint64_t address)
{
	struct kernel_hit hit;

	if (kernel_table_find(table, address, &hit) &&
	    (!hit.name[0] || hit.module[0] != '[' || hit.offset > address))
		abort();
}

/* The whole table, the sparse one of the same text, and both as a System.map. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kernel_table *table = kernel_table_parse((const char *)data, size), *sparse = NULL;
	struct kernel_table *moved;
	int fd = memfd_create("kallsyms", MFD_CLOEXEC);

	for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++)
		check_hit(table, asked[i]);
	if (fd >= 0 && write(fd, data, size) == (ssize_t)size && lseek(fd, 0, SEEK_SET) == 0 &&
	    kernel_table_scan(fd, asked, sizeof(asked) / sizeof(*asked), &sparse) == 0)
		for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++)
			check_hit(sparse, asked[i]);
	if (fd >= 0)
		close(fd);
	moved = table ? sysmap_match(&table, 1, asked, sizeof(asked) / sizeof(*asked), &asked[1], 1)
		      : NULL;
	kernel_table_unref(moved);
	kernel_table_unref(sparse);
	kernel_table_unref(table);
	return 0;
}

uint8_t *fuzz_seed(unsigned int i, size_t *len)
{
	static const char text[] = "0000000000000000 A fixed\n"
				   "ffffffff81000000 T _text\n"
				   "ffffffff81000000 t startup_64\r\n"
				   "ffffffff81000100 T vfs_read\n"
				   "ffffffff81000100 t $x\n"
				   "ffffffffc0000000 t tls_push\t[tls]\n"
				   "ffffffffc0001000 t bpf_prog_1\t[bpf]\n"
				   "ffffffff82000000 D data";
	char *bytes;

	if (i)
		return NULL;
	*len = sizeof(text) - 1;
	bytes = malloc(*len);
	if (!bytes)
		abort();
	memcpy(bytes, text, *len);
	return (uint8_t *)bytes;
}
