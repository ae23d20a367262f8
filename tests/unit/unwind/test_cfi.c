/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Entries and pointers: what is read, what is refused, and that nothing is read behind the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "unwind/cfi.h"
#include "unwind_world.h"

enum { ADDR = 0x10001, TEXT = 0x2001, GOT = 0x9003 };

static struct cfi_section section_of(const struct cfi_builder *b)
{
	return (struct cfi_section){.bytes = b->bytes,
				    .len = b->len,
				    .addr = b->addr,
				    .text_addr = TEXT,
				    .got_addr = GOT,
				    .debug = b->debug};
}

/* ---- pointers ---- */

static bool pointer(uint8_t encoding, const void *bytes, size_t len, uint64_t *value)
{
	uint8_t *copy = malloc(4 + len);
	struct cfi_section section = {
		.bytes = copy, .len = 4 + len, .addr = ADDR, .text_addr = TEXT};
	struct cursor c = {copy + 4, copy + 4 + len, false};
	bool done;

	assert_non_null(copy);
	memset(copy, 0xee, 4);
	memcpy(copy + 4, bytes, len);
	done = cfi_pointer(&c, &section, encoding, GOT, value);
	free(copy);
	return done;
}

static void test_pointer_formats(void **state)
{
	static const struct {
		uint8_t encoding;
		const char *bytes;
		size_t len;
		uint64_t value;
	} rows[] = {
		{0x00, "\1\2\3\4\5\6\7\x88", 8, 0x8807060504030201},
		{0x01, "\x81\x01", 2, 129},
		{0x02, "\xfe\xff", 2, 0xfffe},
		{0x03, "\xfe\xff\xff\xff", 4, 0xfffffffe},
		{0x04, "\1\2\3\4\5\6\7\x88", 8, 0x8807060504030201},
		{0x09, "\x7f", 1, UINT64_MAX},
		{0x0a, "\xfe\xff", 2, UINT64_MAX - 1},
		{0x0b, "\xfe\xff\xff\xff", 4, UINT64_MAX - 1},
		{0x0c, "\xfe\xff\xff\xff\xff\xff\xff\xff", 8, UINT64_MAX - 1},
		{0x1b, "\xfc\xff\xff\xff", 4, ADDR}, /* pcrel: counted from itself */
		{0x1c, "\4\0\0\0\0\0\0\0", 8, ADDR + 8},
		{0x2b, "\4\0\0\0", 4, TEXT + 4},	   /* textrel */
		{0x3b, "\4\0\0\0", 4, GOT + 4},		   /* datarel */
		{0x50, "\0\0\0\0\4\0\0\0\0\0\0\0", 12, 4}, /* aligned: at 8 */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t value = 0;

		assert_true(pointer(rows[i].encoding, rows[i].bytes, rows[i].len, &value));
		assert_true(value == rows[i].value);
		/* One byte less is refused. */
		assert_false(pointer(rows[i].encoding, rows[i].bytes, rows[i].len - 1, &value));
	}
}

static void test_pointers_that_are_refused(void **state)
{
	/* omit; indirect ones, which need the target's memory; funcrel; unknown formats */
	static const uint8_t encodings[] = {0xff, 0x80, 0x9b, 0xbb, 0x4b,
					    0x60, 0x70, 0x05, 0x0f, 0x1d};
	uint64_t value;

	(void)state;
	for (size_t i = 0; i < sizeof(encodings); i++)
		assert_false(pointer(encodings[i], "\1\2\3\4\5\6\7\10", 8, &value));
}

static void test_leb_of_more_than_ten_bytes(void **state)
{
	uint64_t value = 0;

	(void)state;
	assert_true(pointer(0x01, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10, &value));
	assert_true(value == UINT64_MAX);
	assert_true(pointer(0x01, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 10, &value));
	assert_true(value == 0);
	assert_false(pointer(0x01, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, &value));
	assert_true(pointer(0x09, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x7f", 10, &value));
	assert_true(value == UINT64_C(1) << 63);
}

/* ---- entries ---- */

static enum cfi_found entry(const struct cfi_builder *b, uint64_t offset, struct cfi_cie *cie,
			    struct cfi_fde *fde, uint64_t *next)
{
	struct cfi_section section = section_of(b);
	uint8_t *copy = malloc(b->len ? b->len : 1);
	enum cfi_found found;

	assert_non_null(copy);
	memcpy(copy, b->bytes, b->len);
	section.bytes = copy;
	found = cfi_entry(&section, offset, cie, fde, next);
	free(copy);
	return found;
}

static void test_entries(void **state)
{
	struct cfi_builder_cie plain = {.ra = 16};

	(void)state;
	for (int kind = 0; kind < 4; kind++) {
		struct cfi_builder b = {.addr = ADDR, .debug = kind & 1, .wide = kind & 2};
		uint64_t cie_at = cfi_build_cie(&b, &plain);
		uint64_t fde_at = cfi_build_fde(&b, cie_at, 0x2345, 0x10, CFI(0x0e, 24));
		uint64_t end = b.len, next = 0;
		struct cfi_cie cie = {0};
		struct cfi_fde fde;

		cfi_build_terminator(&b);
		assert_int_equal(entry(&b, cie_at, &cie, &fde, &next), CFI_CIE);
		assert_true(next == fde_at);
		assert_int_equal(entry(&b, fde_at, &cie, &fde, &next), CFI_FDE);
		assert_true(next == end);
		assert_true(fde.start == 0x2345 && fde.end == 0x2355);
		assert_true(cie.valid && cie.ra_column == 16 && cie.data_align == -8);
		assert_int_equal(entry(&b, end, &cie, &fde, &next), CFI_TERMINATOR);
		assert_int_equal(entry(&b, b.len, &cie, &fde, &next), CFI_BAD);
		assert_true(next == 0);
		assert_int_equal(entry(&b, UINT64_MAX, &cie, &fde, &next), CFI_BAD);
	}
}

static bool cie_is_read(const struct cfi_builder_cie *spec, bool debug, struct cfi_cie *cie)
{
	struct cfi_builder b = {.addr = ADDR, .debug = debug};
	uint64_t cie_at = cfi_build_cie(&b, spec), next;
	uint8_t body[40] = {0};
	struct cfi_fde fde;

	*cie = (struct cfi_cie){0};
	body[8] = 0x10; /* behind an address size of 8: a length */
	return entry(&b, cfi_build_raw_fde(&b, cie_at, body, sizeof(body)), cie, &fde, &next) ==
	       CFI_FDE;
}

static void test_augmentations(void **state)
{
	static const struct {
		const char *letters;
		const char *data;
		size_t len;
		bool read, signal;
	} rows[] = {
		{"", NULL, 0, true, false},
		{"z", NULL, 0, true, false},
		{"zR", "\x1b", 1, true, false},
		{"zRS", "\x1b", 1, true, true},
		{"zSR", "\x1b", 1, true, true},
		{"zPLR", "\x9b\1\2\3\4\x1b\x1b", 7, true, false}, /* an indirect personality */
		{"zPR", "\0\1\2\3\4\5\6\7\10\x1b", 10, true, false},
		{"zRB", "\x1b", 1, true, false},
		{"zRG", "\x1b", 1, true, false},
		{"zX", "\1\2\3", 3, true, false},     /* unknown, but its length is known */
		{"X", NULL, 0, false, false},	      /* not even that */
		{"zPR", "\x1b\1\2", 3, false, false}, /* cut inside of its data */
		{"zRRRRRRRR", "\x1b\x1b\x1b\x1b\x1b\x1b\x1b\x1b", 8, false, false}, /* too long */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cfi_builder_cie spec = {.augmentation = rows[i].letters,
					       .data = (const uint8_t *)rows[i].data,
					       .data_len = rows[i].len,
					       .ra = 16};
		struct cfi_cie cie;

		assert_int_equal(cie_is_read(&spec, false, &cie), rows[i].read);
		if (rows[i].read)
			assert_int_equal(cie.signal, rows[i].signal);
	}
}

static void test_versions(void **state)
{
	struct cfi_builder_cie spec = {.ra = 16, .augmentation = ""};
	struct cfi_cie cie;

	(void)state;
	for (unsigned int version = 1; version < 8; version++) {
		spec.version = (uint8_t)version;
		assert_int_equal(cie_is_read(&spec, true, &cie),
				 version == 1 || version == 3 || version == 4);
	}
	spec.version = 4;
	spec.addr_size = 4; /* 32-bit tables say nothing of 64-bit code */
	assert_false(cie_is_read(&spec, true, &cie));
	spec.addr_size = 8;
	spec.segment_size = 8;
	assert_true(cie_is_read(&spec, true, &cie));
	spec.segment_size = 9;
	assert_false(cie_is_read(&spec, true, &cie));
	spec = (struct cfi_builder_cie){.version = 3, .ra = 300, .augmentation = ""};
	assert_true(cie_is_read(&spec, true, &cie));
	assert_true(cie.ra_column == 300);
}

/* Old gcc: "eh" and a word that is skipped. */
static void test_eh_augmentation(void **state)
{
	struct cfi_builder b = {.addr = ADDR};
	struct cfi_cie cie = {0};
	struct cfi_fde fde;
	uint8_t body[16] = {0x00, 0x20, 0, 0, 0, 0, 0, 0, 0x10};
	uint64_t next;

	(void)state;
	cfi_put_number(&b, 24, 4);
	cfi_put_number(&b, 0, 4);
	cfi_put(&b, "\1eh", 4);
	cfi_put_number(&b, 0x1234567812345678, 8);
	cfi_put(&b, "\1\x78\x10\0\0\0\0\0", 8);
	assert_int_equal(entry(&b, cfi_build_raw_fde(&b, 0, body, sizeof(body)), &cie, &fde, &next),
			 CFI_FDE);
	assert_true(cie.code_align == 1 && cie.data_align == -8 && cie.ra_column == 16);
	assert_true(fde.start == 0x2000 && fde.end == 0x2010);
}

static void test_damaged_entries(void **state)
{
	struct cfi_builder_cie plain = {.ra = 16};
	struct cfi_builder b = {.addr = ADDR};
	uint64_t cie_at = cfi_build_cie(&b, &plain);
	uint64_t fde_at = cfi_build_fde(&b, cie_at, 0x2345, 0x10, CFI(0x0e, 24));
	static const uint32_t cie_pointers[] = {1, 4, 8, 100000, UINT32_MAX};
	struct cfi_builder good = b;
	struct cfi_cie cie = {0};
	struct cfi_fde fde;
	uint64_t next;
	uint32_t number;

	(void)state;
	/* A CIE pointer to itself, in front of the section, or to what is no CIE. */
	for (size_t i = 0; i < sizeof(cie_pointers) / sizeof(cie_pointers[0]); i++) {
		b = good;
		memcpy(b.bytes + fde_at + 4, &cie_pointers[i], 4);
		cie.valid = false;
		assert_int_equal(entry(&b, fde_at, &cie, &fde, &next), CFI_BAD);
		assert_true(next == b.len); /* it costs its own function only */
	}
	/* Lengths past the end. */
	b = good;
	number = (uint32_t)(b.len - fde_at - 4 + 1);
	memcpy(b.bytes + fde_at, &number, 4);
	assert_int_equal(entry(&b, fde_at, &cie, &fde, &next), CFI_BAD);
	assert_true(next == 0);
	/* A range that goes around the end of memory. */
	b = (struct cfi_builder){.debug = true};
	cie_at = cfi_build_cie(&b, &plain);
	fde_at = cfi_build_fde(&b, cie_at, UINT64_MAX - 4, 16, NO_CFI);
	cie.valid = false;
	assert_int_equal(entry(&b, fde_at, &cie, &fde, &next), CFI_BAD);
	/* An augmentation longer than the entry. */
	b = (struct cfi_builder){.addr = ADDR};
	cie_at = cfi_build_cie(&b, &plain);
	fde_at = cfi_build_raw_fde(&b, cie_at, (const uint8_t *)"\0\0\0\0\1\0\0\0\x7f", 9);
	cie.valid = false;
	assert_int_equal(entry(&b, fde_at, &cie, &fde, &next), CFI_BAD);
}

/* Cut anywhere, an entry is either read or refused, and the rest is left alone. */
static void test_every_cut(void **state)
{
	struct cfi_builder_cie plain = {.ra = 16, .version = 4, .augmentation = ""};
	struct cfi_builder b = {.debug = true};
	uint64_t cie_at = cfi_build_cie(&b, &plain);
	uint64_t fde_at = cfi_build_fde(&b, cie_at, 0x2345, 0x10, CFI(0x0e, 24));
	size_t len = b.len;

	(void)state;
	for (b.len = 0; b.len < len; b.len++) {
		struct cfi_cie cie = {0};
		struct cfi_fde fde;
		uint64_t next;

		assert_int_not_equal(entry(&b, cie_at, &cie, &fde, &next), CFI_FDE);
		assert_int_not_equal(entry(&b, fde_at, &cie, &fde, &next), CFI_FDE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pointer_formats),
		cmocka_unit_test(test_pointers_that_are_refused),
		cmocka_unit_test(test_leb_of_more_than_ten_bytes),
		cmocka_unit_test(test_entries),
		cmocka_unit_test(test_augmentations),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_eh_augmentation),
		cmocka_unit_test(test_damaged_entries),
		cmocka_unit_test(test_every_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
