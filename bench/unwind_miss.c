/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * What the first visit of an address costs: random addresses of random functions, each walked once
 * with no stack at all, so that a walk is a lookup in the tables.
 * usage: unwind-miss ELF_FILE COUNT [ADDRESSES_OUT]
 *
 * Lines "NAME VALUE": open-us (opening the file and the very first lookup, which reads the tables),
 * miss-ns, again-ns (another process with the same image), libdw-ns (the same addresses by
 * elfutils: CFA and eight registers), libdw-again-ns. ADDRESSES_OUT gets the addresses as u64, for
 * framehop-peer.
 */
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "image/image.h"
#include "unwind/unwimage.h"
#include "unwind/unwind.h"

struct miss {
	struct image *image;
	struct unw_image *rules;
	uint64_t *addresses;
	size_t count;
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Drops what lies between functions and what is there twice; shuffles the rest. */
static void tidy(struct miss *m, uint64_t *state)
{
	struct unw_image *tables = NULL;
	struct cfi_row row;
	size_t n = 0;

	if (unw_image_new(m->image, &tables, NULL) < 0)
		exit(1);
	qsort(m->addresses, m->count, sizeof(*m->addresses), by_value);
	for (size_t i = 0; i < m->count; i++)
		if ((!i || m->addresses[i] != m->addresses[i - 1]) &&
		    unw_image_row(tables, m->addresses[i], &row))
			m->addresses[n++] = m->addresses[i];
	unw_image_unref(tables);
	m->count = n;
	for (size_t i = n; i > 1; i--) {
		size_t j = next_random(state) % i;
		uint64_t swap = m->addresses[i - 1];

		m->addresses[i - 1] = m->addresses[j];
		m->addresses[j] = swap;
	}
}

/* Functions begin where the table of .eh_frame_hdr says. */
static bool choose(struct miss *m, size_t count)
{
	const struct image_section *hdr = image_section_by_name(m->image, ".eh_frame_hdr");
	uint64_t state = UINT64_C(0x2545f4914f6cdd1d);
	const uint8_t *bytes;
	uint32_t functions;
	size_t len;

	if (!hdr || image_section_bytes(m->image, hdr, &bytes, &len, NULL) < 0 || len < 28)
		return false;
	memcpy(&functions, bytes + 8, 4);
	if (functions < 2 || functions > (len - 12) / 8)
		return false;
	m->addresses = malloc(count * sizeof(*m->addresses));
	for (m->count = 0; m->addresses && m->count < count; m->count++) {
		size_t i = next_random(&state) % (functions - 1);
		int32_t start, next;

		memcpy(&start, bytes + 12 + 8 * i, 4);
		memcpy(&next, bytes + 20 + 8 * i, 4);
		if (next > start)
			start += (int32_t)(next_random(&state) % (uint32_t)(next - start));
		m->addresses[m->count] = hdr->addr + (uint64_t)(int64_t)start;
	}
	if (m->addresses)
		tidy(m, &state);
	return m->addresses;
}

static uint32_t number(void *data, struct unw_space *space, const struct unw_map *map,
		       uint64_t address)
{
	(void)space, (void)map, (void)address;
	return (uint32_t)(*(uint64_t *)data)++;
}

/* One visit each in a new process that maps the image; nanoseconds per address. */
static double visit(const struct miss *m)
{
	const struct unw_map map = {.start = 0, .end = UINT64_C(1) << 40, .image = m->rules};
	uint64_t distinct = 0;
	const struct unw_callbacks callbacks = {.intern = number, .data = &distinct};
	struct unw_regs regs = {.known = (1 << 17) - 1, .value[7] = UINT64_C(0x7ffc00000000)};
	struct unw_space *space = NULL;
	struct unwinder *u = NULL;
	struct unw_result result;
	double cost;

	if (unw_space_new(&space, NULL) < 0 || unw_space_map(space, &map, NULL) < 0 ||
	    unwinder_new(UNW_X86_64, &callbacks, &u, NULL) < 0)
		exit(1);
	cost = now();
	for (size_t i = 0; i < m->count; i++) {
		regs.value[16] = m->addresses[i];
		unw_walk(u, space, &regs, NULL, 0, &result);
	}
	cost = (now() - cost) / (double)m->count;
	unwinder_free(u);
	unw_space_free(space);
	return cost;
}

static void visit_libdw(const struct miss *m, Dwarf_CFI *cfi, const char *name)
{
	static const int registers[] = {3, 6, 7, 12, 13, 14, 15, 16};
	double start = now();

	for (size_t i = 0; i < m->count; i++) {
		Dwarf_Frame *frame = NULL;
		Dwarf_Op *ops, memory[3];
		size_t count;

		if (dwarf_cfi_addrframe(cfi, m->addresses[i], &frame))
			continue;
		dwarf_frame_cfa(frame, &ops, &count);
		for (size_t j = 0; j < sizeof(registers) / sizeof(*registers); j++)
			dwarf_frame_register(frame, registers[j], memory, &ops, &count);
		free(frame);
	}
	printf("%s %.0f\n", name, (now() - start) / (double)m->count);
}

static void by_libdw(const struct miss *m, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf;
	Dwarf_CFI *cfi;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	cfi = elf ? dwarf_getcfi_elf(elf) : NULL;
	if (cfi) {
		visit_libdw(m, cfi, "libdw-ns");
		visit_libdw(m, cfi, "libdw-again-ns");
		dwarf_cfi_end(cfi);
	}
	elf_end(elf);
	close(fd);
}

static void first_lookup(const char *path)
{
	struct miss m = {.count = 1};
	uint64_t address = 0;
	double start = now();

	if (image_open_path(path, &m.image, NULL) < 0 || unw_image_new(m.image, &m.rules, NULL) < 0)
		exit(1);
	address = image_entry(m.image);
	m.addresses = &address;
	visit(&m);
	printf("open-us %.0f\n", (now() - start) / 1e3);
	unw_image_unref(m.rules);
	image_unref(m.image);
}

int main(int argc, char **argv)
{
	struct miss m = {0};

	if (argc < 3 || image_open_path(argv[1], &m.image, NULL) < 0 ||
	    !choose(&m, strtoul(argv[2], NULL, 10)) || unw_image_new(m.image, &m.rules, NULL) < 0) {
		fprintf(stderr, "usage: unwind-miss ELF_FILE COUNT [ADDRESSES_OUT]\n");
		return 1;
	}
	if (argc > 3) {
		FILE *out = fopen(argv[3], "wb");

		if (!out || fwrite(m.addresses, 8, m.count, out) != m.count || fclose(out))
			return 1;
	}
	first_lookup(argv[1]);
	printf("addresses %zu\n", m.count);
	printf("miss-ns %.0f\n", visit(&m));
	printf("again-ns %.0f\n", visit(&m));
	by_libdw(&m, argv[1]);
	unw_image_unref(m.rules);
	image_unref(m.image);
	free(m.addresses);
	return 0;
}
