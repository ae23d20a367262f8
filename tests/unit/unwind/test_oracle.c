/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Every row of a few large files against libdw: the rule of the CFA, the return address and the
 * callee-saved registers must be the same. test_oracle FILE... checks other files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "image/image.h"
#include "unwind/cfi.h"

static char **extra_files;
static int extra_count;

struct checked {
	const char *path;
	enum unw_arch arch;
	Dwarf_CFI *oracle;
	struct cfi_section section;
	unsigned long rows, differences;
};

static bool same_register(const struct cfi_rule *ours, const Dwarf_Op *ops, size_t count)
{
	switch (ours->kind) {
	case CFI_UNSET: /* libdw fills in what the ABI says */
		return count == 0;
	case CFI_UNDEFINED:
		return count == 0 && ops;
	case CFI_SAME:
		return count == 0 && !ops;
	case CFI_OFFSET:
	case CFI_VAL_OFFSET:
		if (!count || ops[0].atom != DW_OP_call_frame_cfa)
			return false;
		if (ours->value == 0)
			return count == 1 || ops[1].atom != DW_OP_plus_uconst;
		return count >= 2 && ops[1].atom == DW_OP_plus_uconst &&
		       (int64_t)ops[1].number == ours->value;
	case CFI_REGISTER:
		return count == 1 &&
		       (ops[0].atom == DW_OP_regx ? (int64_t)ops[0].number == ours->value
						  : ops[0].atom - DW_OP_reg0 == ours->value);
	default: /* libdw pushes the CFA in front of an expression's own text */
		return count >= 1 && ops[0].atom == DW_OP_call_frame_cfa &&
		       (ours->len == 0 || (count >= 2 && ops[1].atom == ours->text[0]));
	}
}

static bool same_cfa(const struct cfi_rule *ours, const Dwarf_Op *ops, size_t count)
{
	if (ours->kind == CFI_EXPRESSION)
		return count >= 1 && ops[0].atom == ours->text[0];
	if (ours->kind != CFI_REGISTER || count != 1)
		return false;
	if (ops[0].atom == DW_OP_bregx)
		return ops[0].number == ours->reg && (int64_t)ops[0].number2 == ours->value;
	return ops[0].atom - DW_OP_breg0 == ours->reg && (int64_t)ops[0].number == ours->value;
}

static void report(struct checked *c, uint64_t address, const char *what, int reg)
{
	if (c->differences++ < 10)
		print_error("%s %#llx: %s %d differs\n", c->path, (unsigned long long)address, what,
			    reg);
}

static void check_row(struct checked *c, const struct cfi_row *row, uint64_t address)
{
	static const uint8_t x86[] = {3, 6, 12, 13, 14, 15, 16};
	static const uint8_t arm[] = {19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30};
	const uint8_t *regs = c->arch == UNW_X86_64 ? x86 : arm;
	size_t reg_count = c->arch == UNW_X86_64 ? sizeof(x86) : sizeof(arm), count;
	Dwarf_Frame *frame = NULL;
	Dwarf_Op memory[3], *ops;

	c->rows++;
	if (dwarf_cfi_addrframe(c->oracle, address, &frame) != 0) {
		report(c, address, "entry", 0);
		return;
	}
	if (dwarf_frame_cfa(frame, &ops, &count) != 0 || !same_cfa(&row->cfa, ops, count))
		report(c, address, "CFA", row->cfa.reg);
	for (size_t i = 0; i < reg_count; i++)
		if (dwarf_frame_register(frame, regs[i], memory, &ops, &count) != 0 ||
		    !same_register(&row->regs[regs[i]], ops, count))
			report(c, address, "register", regs[i]);
	free(frame);
}

static void check_entries(struct checked *c)
{
	struct cfi_cie cie = {0};
	uint64_t offset = 0, next = 0;

	for (; offset < c->section.len; offset = next) {
		struct cfi_fde fde;
		enum cfi_found found = cfi_entry(&c->section, offset, &cie, &fde, &next);

		assert_int_not_equal(found, CFI_BAD);
		if (found != CFI_FDE)
			continue;
		for (uint64_t address = fde.start; address < fde.end;) {
			struct cfi_row row;

			assert_true(cfi_row(&c->section, &cie, &fde, address, &row));
			assert_true(row.start == address && row.end > address);
			check_row(c, &row, address);
			address = row.end;
		}
	}
}

static unsigned long check_file(const char *path)
{
	struct checked c = {.path = path};
	struct image *image = NULL;
	const struct image_section *section;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf;

	if (fd < 0)
		return 0;
	assert_int_equal(image_open_path(path, &image, NULL), 0);
	section = image_section_by_name(image, ".eh_frame");
	assert_non_null(section);
	c.arch = image_machine(image) == EM_AARCH64 ? UNW_AARCH64 : UNW_X86_64;
	c.section.arch = c.arch;
	c.section.addr = section->addr;
	assert_int_equal(
		image_section_bytes(image, section, &c.section.bytes, &c.section.len, NULL), 0);
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	c.oracle = dwarf_getcfi_elf(elf);
	assert_non_null(c.oracle);
	check_entries(&c);
	print_message("%s: %lu rows, %lu differ\n", path, c.rows, c.differences);
	assert_int_equal(c.differences, 0);
	dwarf_cfi_end(c.oracle);
	elf_end(elf);
	close(fd);
	image_unref(image);
	return c.rows;
}

static void test_rows_of_files(void **state)
{
	static const char *const files[] = {
		"/lib/x86_64-linux-gnu/libc.so.6",
		"/lib64/ld-linux-x86-64.so.2",
		"/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
		"/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
		"/usr/aarch64-linux-gnu/lib/libc.so.6",
		"/usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1",
		"/lib/aarch64-linux-gnu/libc.so.6",
	};
	unsigned long rows = 0;

	(void)state;
	for (int i = 0; i < extra_count; i++)
		rows += check_file(extra_files[i]);
	for (size_t i = 0; !extra_count && i < sizeof(files) / sizeof(files[0]); i++)
		rows += check_file(files[i]);
	if (!rows)
		skip();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows_of_files)};

	extra_files = argv + 1;
	extra_count = argc - 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
