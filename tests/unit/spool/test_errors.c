/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Every class of error in a spool's content, through all three readers: it names the file, the
 * record's tag and offset, what was found and what was expected.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <stackpulse/error.h>

#include "base/util.h"
#include "spool_bytes.h"
#include "spool_output.h"

/* Module 0 of process 7 at 0x10-0x20, frame 0, node 0, thread 0 and a sample at 5 ns. */
static const char valid[] = "\x01\x00\x0e\x10\x20\x00\x00\x00\x00\x00\x00\x02/a"
			    "\x02\x00\x01\x05"
			    "\x03\x00\xff\xff\xff\xff\x0f\x00"
			    "\x04\x00\x0e\x08"
			    "\x05\x0a\x00\x00";

#define TWO_TO_32 "\x80\x80\x80\x80\x10"
/* A JIT module's fields up to the kernel flag. */
#define JIT "\x09\x01\x0e\x10\x20\x00\x00\x00\x00\x00"

struct fault {
	int version;
	const char *bytes;
	size_t len;
	const char *text; /* part of the message */
};

#define FAULT(version, bytes, text) { version, bytes, sizeof(bytes) - 1, text }

static const struct fault record_faults[] = {
	FAULT(4, "\x00", "unknown record tag 0, expected 1 to 9"),
	FAULT(4, "\x0a", "unknown record tag 10, expected 1 to 9"),
	FAULT(3, "\x09", "unknown record tag 9, expected 1 to 8"),
	FAULT(4, "\x01\x05", "module id 5, expected 1"),
	FAULT(4, "\x01\x00", "module id 0, expected 1"),
	FAULT(4, "\x01\x01" TWO_TO_32, "process id 2147483648, expected 32 bits"),
	FAULT(4, "\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00",
	      "process id 0 of a user module, expected at least 1"),
	FAULT(4, "\x01\x01\x0e\x00\x00\x00\x00" TWO_TO_32,
	      "major device number 4294967296, expected at most 4294967295"),
	FAULT(4, "\x01\x01\x0e\x00\x00\x00\x00\x00" TWO_TO_32,
	      "minor device number 4294967296, expected at most 4294967295"),
	FAULT(3, "\x01\x01\x0e\x00\x00\x00\x00\x00\x00\x00\x00\x01\xff",
	      "the module's path of 1 bytes is not UTF-8"),
	FAULT(4, "\x01\x01\x0e\x00\x00\x00\x00\x00\x00\x00\x00"
		 "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
	      "a length of 18446744073709551615 bytes leaves the address space"),
	FAULT(4, "\x02\x02", "frame id 2, expected 1"),
	FAULT(4, "\x02\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
	      "a number has more than 64 bits"),
	FAULT(4, "\x02\x01\x04\x00", "refers to module 2, expected less than 1"),
	FAULT(4, "\x02\x01\x00\x20",
	      "frame at 0x20, expected an address of module 0, which has 0x10 bytes from 0x0 on"),
	FAULT(4, "\x02\x01\x05\x01", "a truncation marker has the value 1, expected 0"),
	FAULT(4, "\x03\x02", "stack node id 2, expected 1"),
	FAULT(4, "\x03\x01\x05", "refers to stack node 5, expected less than 1"),
	FAULT(4, "\x03\x01\x00\x07", "refers to frame 7, expected less than 1"),
	FAULT(4, "\x04\x02", "thread id 2, expected 1"),
	FAULT(4, "\x04\x01\x00", "process id 0, expected 1 to 2147483647"),
	FAULT(4, "\x04\x01\x0e\x00", "thread id 0, expected 1 to 2147483647"),
	FAULT(4, "\x05\x13", "time moves by -10 ns from 5, expected to stay within 0 and 2^64-1"),
	FAULT(4, "\x05\x00\x01", "refers to thread 1, expected less than 1"),
	FAULT(4, "\x05\x00\x00\x01", "refers to stack node 1, expected less than 1"),
	FAULT(4, "\x06\x00\x00", "process id 0, expected 1 to 2147483647"),
	FAULT(4, "\x07\x00", "process id 0, expected 1 to 2147483647"),
	FAULT(4, "\x08\x01", "refers to module 1, expected less than 1"),
	FAULT(4, JIT "\x01\x00\x00", "a JIT module is marked as a kernel module"),
	FAULT(4, JIT "\x00\x00\xc1\x84\x3d", "1000001 symbols, expected at most 1000000"),
	FAULT(4, JIT "\x00\x00\x01\x05\x06",
	      "symbol 0x5-0x6, expected a range within 0x10-0x20"),
	FAULT(4, JIT "\x00\x00\x01\x10\x11\x81\x80\x40",
	      "symbol name of 1048577 bytes, expected at most 1048576"),
	FAULT(4, JIT "\x00\x00\x01\x10\x11\x01\xff", "a symbol's name is not UTF-8"),
	FAULT(4, JIT "\x00\x00\x02\x11\x12\x00\x10\x12\x00",
	      "symbol at 0x10, expected 0x11 or above"),
};

static const struct fault header_faults[] = {
	FAULT(0, "", "not a spool: it has 0 bytes, a header has at least 10"),
	FAULT(0, "SPULSE4", "not a spool: it has 7 bytes, a header has at least 10"),
	FAULT(0, "#!/bin/sh\n", "not a spool: it does not begin with SPULSE3 or SPULSE4"),
	FAULT(0, "SPULSE4!", "not a spool: it does not begin with SPULSE3 or SPULSE4"),
	FAULT(0, "SPULSE2\0\0\0\0",
	      "unsupported version 2 of the spool format, expected 3 or 4"),
	FAULT(0, "SPULSE5\0\0\0\0",
	      "unsupported version 5 of the spool format, expected 3 or 4"),
	FAULT(0, "SPULSE4\0\0\0\x02", "clock origin marker 2, expected 0 or 1"),
	FAULT(0, "SPULSE4\0\0\0\x01\0\x04\x01\0", "clock origin has the sign 2, expected 1 or -1"),
	FAULT(0, "SPULSE4\0\0\0\x01\0\x02\x01\x80\x94\xeb\xdc\x03",
	      "clock origin has 1000000000 nanoseconds, expected at most 999999999"),
	FAULT(0, "SPULSE4\0\0\0\x01\0\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\0",
	      "clock origin does not fit 64-bit seconds"),
	FAULT(0, "SPULSE3\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
	      "a number has more than 64 bits"),
	FAULT(0, "SPULSE3\0\0", "the header is cut off after 9 bytes"),
	FAULT(0, "SPULSE4\0\0\0\x01\0\x02", "the header is cut off after 13 bytes"),
};

static int open_snapshot(const char *path, struct spulse_error **err)
{
	SPULSE_CLEANUP(snapshot) snapshot = NULL;

	return spulse_snapshot_open(path, &snapshot, err);
}

static int open_replay(const char *path, struct spulse_error **err)
{
	SPULSE_CLEANUP(replay) replay = NULL;

	return spulse_replay_open(path, &replay, err);
}

static int open_tail(const char *path, struct spulse_error **err)
{
	SPULSE_CLEANUP(tail) tail = NULL;

	return spulse_tail_open(path, &tail, err);
}

static void check_part(const char *message, const char *part)
{
	if (strstr(message, part))
		return;
	print_error("missing in \"%s\":\n", message);
	fail_msg("%s", part);
}

/* The one error of a file; tag -1: of its header. */
static void check_file(const struct strbuf *bytes, int tag, uint64_t offset, const char *text)
{
	static int (*const readers[])(const char *path, struct spulse_error **err) = {
		open_snapshot, open_replay, open_tail
	};
	struct spool_file file;
	char place[64];

	spool_file_make(&file, bytes->data, bytes->len);
	snprintf(place, sizeof(place), "tag %d at offset %" PRIu64, tag, offset);
	for (size_t i = 0; i < ARRAY_LEN(readers); i++) {
		struct spulse_spool_position position = { 0 };
		struct spulse_error *err = NULL;
		const char *message;

		assert_int_equal(readers[i](file.path, &err), -SPULSE_ERROR_CORRUPT_SPOOL);
		message = spulse_error_message(err);
		check_part(message, text);
		check_part(message, file.path);
		check_part(message, "corrupt spool");
		check_part(message, tag < 0 ? "header" : place);
		assert_string_equal(spulse_error_path(err), file.path);
		assert_true(spulse_error_spool_position(err, &position));
		assert_int_equal(position.tag, tag);
		assert_int_equal(position.offset, offset);
		spulse_error_free(err);
	}
	spool_file_close(&file);
}

static void test_records(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(record_faults); i++) {
		const struct fault *fault = &record_faults[i];
		struct strbuf bytes = { 0 };
		uint64_t offset;

		bytes_header(&bytes, fault->version);
		strbuf_add(&bytes, valid, sizeof(valid) - 1);
		offset = bytes.len;
		strbuf_add(&bytes, fault->bytes, fault->len);
		/* The same whatever follows it. */
		check_file(&bytes, fault->bytes[0], offset, fault->text);
		strbuf_add(&bytes, valid, sizeof(valid) - 1);
		check_file(&bytes, fault->bytes[0], offset, fault->text);
		strbuf_release(&bytes);
	}
}

static void test_headers(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(header_faults); i++) {
		const struct fault *fault = &header_faults[i];
		struct strbuf bytes = { 0 };

		strbuf_add(&bytes, fault->bytes, fault->len);
		check_file(&bytes, -1, 0, fault->text);
		strbuf_release(&bytes);
	}
}

/* A record far behind the first block. */
static void test_offset_behind_many_blocks(void **state)
{
	struct spulse_spool_position position = { 0 };
	struct strbuf bytes = { 0 };
	struct spulse_error *err = NULL;
	struct spool_file file;
	uint64_t offset;

	(void)state;
	bytes_header(&bytes, 4);
	strbuf_add(&bytes, valid, sizeof(valid) - 1);
	for (int i = 0; i < 200000; i++)
		strbuf_add(&bytes, "\x05\x02\x00\x00", 4);
	offset = bytes.len;
	strbuf_add(&bytes, "\x05\x02\x03\x00", 4);
	spool_file_make(&file, bytes.data, bytes.len);
	assert_int_equal(open_snapshot(file.path, &err), -SPULSE_ERROR_CORRUPT_SPOOL);
	assert_true(spulse_error_spool_position(err, &position));
	assert_int_equal(position.offset, offset);
	check_part(spulse_error_message(err), "refers to thread 3");
	spulse_error_free(err);
	/* A tail's first batch does not reach it. */
	assert_int_equal(open_tail(file.path, NULL), 0);
	spool_file_close(&file);
	strbuf_release(&bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_headers),
		cmocka_unit_test(test_offset_behind_many_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
