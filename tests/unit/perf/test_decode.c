/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "perf_records.h"
#include "random.h"

static struct perf_records w;
static struct perf_event event;

static int setup(void **state)
{
	(void)state;
	perf_records_init(&w, 0xff01ff);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	perf_records_release(&w);
	return 0;
}

/* Decodes the last record written. */
static int decode(void)
{
	return perf_record_decode(&w.layout, w.bytes.data + w.start, w.bytes.len - w.start,
				  &event);
}

static void test_sample(void **state)
{
	const uint64_t chain[] = { PERF_CONTEXT_KERNEL, 0xffffffff81000000, 0xffffffff81000100 };
	uint64_t regs[17];
	uint8_t stack[64];

	(void)state;
	for (int i = 0; i < 17; i++)
		regs[i] = 1000 + i;
	for (int i = 0; i < 64; i++)
		stack[i] = i;
	perf_put_sample(&w, &(struct perf_sample_fields){
		.pid = 10, .tid = 11, .time = 12345, .ip = 0x401000,
		.chain = chain, .chain_len = 3, .abi = PERF_SAMPLE_REGS_ABI_64, .regs = regs,
		.stack = stack, .stack_used = 48, .stack_size = 64,
	});
	assert_int_equal(decode(), 0);
	assert_int_equal(event.type, PERF_RECORD_SAMPLE);
	assert_int_equal(event.misc, PERF_RECORD_MISC_USER);
	assert_true(event.has_ids && event.has_time);
	assert_int_equal(event.pid, 10);
	assert_int_equal(event.tid, 11);
	assert_int_equal(event.time, 12345);
	assert_int_equal(event.sample.ip, 0x401000);
	assert_int_equal(event.sample.callchain_len, 3);
	assert_memory_equal(event.sample.callchain, chain, sizeof(chain));
	assert_int_equal(event.sample.regs_abi, PERF_SAMPLE_REGS_ABI_64);
	assert_int_equal(event.sample.regs_mask, 0xff01ff);
	assert_memory_equal(event.sample.regs, regs, sizeof(regs));
	assert_true(event.sample.has_stack);
	assert_int_equal(event.sample.stack_len, 48);
	assert_int_equal(event.sample.stack_requested, 64);
	assert_memory_equal(event.sample.stack, stack, 48);
}

static void test_sample_without_user_state(void **state)
{
	(void)state;
	perf_put_sample(&w, &(struct perf_sample_fields){ .pid = 10, .tid = 11 });
	assert_int_equal(decode(), 0);
	assert_null(event.sample.regs);
	assert_null(event.sample.callchain);
	assert_false(event.sample.has_stack);
	assert_int_equal(event.sample.regs_abi, PERF_SAMPLE_REGS_ABI_NONE);
}

static void test_registers_of_32_bits_are_skipped(void **state)
{
	(void)state;
	perf_put_sample(&w, &(struct perf_sample_fields){
		.abi = PERF_SAMPLE_REGS_ABI_32, .stack_used = 8, .stack_size = 16 });
	assert_int_equal(decode(), 0);
	assert_null(event.sample.regs);
	assert_int_equal(event.sample.regs_abi, PERF_SAMPLE_REGS_ABI_32);
	assert_int_equal(event.sample.stack_len, 8);
}

static void test_unknown_register_width_is_refused(void **state)
{
	(void)state;
	perf_put_sample(&w, &(struct perf_sample_fields){ .abi = 3, .stack_size = 16 });
	assert_int_equal(decode(), -EBADMSG);
}

static void test_more_stack_than_copied_is_refused(void **state)
{
	uint64_t used = 65;

	(void)state;
	perf_put_sample(&w, &(struct perf_sample_fields){ .stack_used = 64, .stack_size = 64 });
	assert_int_equal(decode(), 0);
	memcpy(w.bytes.data + w.bytes.len - 8, &used, 8);
	assert_int_equal(decode(), -EBADMSG);
}

static void test_counts_beyond_the_record_are_refused(void **state)
{
	uint64_t huge[] = { 4, 1ull << 61, UINT64_MAX, UINT64_MAX / 8 + 1 };

	(void)state;
	perf_put_sample(&w, &(struct perf_sample_fields){ .stack_size = 16 });
	for (size_t i = 0; i < ARRAY_LEN(huge); i++) {
		memcpy(w.bytes.data + 32, &huge[i], 8); /* call chain length */
		assert_int_equal(decode(), -EBADMSG);
	}
}

static void test_sample_is_consumed_exactly(void **state)
{
	(void)state;
	perf_put_sample(&w, &(struct perf_sample_fields){ .stack_size = 16 });
	perf_records_u64(&w, 0);
	perf_records_end(&w);
	assert_int_equal(decode(), -EBADMSG);
}

static void test_every_field_of_a_foreign_sample_is_stepped_over(void **state)
{
	(void)state;
	w.layout = (struct perf_layout){
		.sample_type = 0x1ffffff & ~(uint64_t)PERF_SAMPLE_WEIGHT,
		.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_LOST |
			       PERF_FORMAT_TOTAL_TIME_ENABLED,
		.branch_sample_type = PERF_SAMPLE_BRANCH_HW_INDEX,
		.regs_user_mask = 0x3,
		.regs_intr_mask = 0x7,
		.event_id = 5,
	};
	perf_records_begin(&w, PERF_RECORD_SAMPLE, 0);
	perf_records_u64(&w, 1); /* identifier */
	perf_records_u64(&w, 0x1234); /* ip */
	perf_records_u32(&w, 7);
	perf_records_u32(&w, 8);
	perf_records_u64(&w, 99); /* time */
	perf_records_u64(&w, 0); /* addr */
	perf_records_u64(&w, 1); /* id */
	perf_records_u64(&w, 1); /* stream id */
	perf_records_u64(&w, 6); /* cpu */
	perf_records_u64(&w, 4711); /* period */
	perf_records_u64(&w, 2); /* read: count, time, 2 x (value, id, lost) */
	for (int i = 0; i < 7; i++)
		perf_records_u64(&w, i);
	perf_records_u64(&w, 1); /* call chain */
	perf_records_u64(&w, 0x1234);
	perf_records_u32(&w, 4); /* raw */
	perf_records_u32(&w, 0);
	perf_records_u64(&w, 1); /* branches: count, index, entry */
	for (int i = 0; i < 4; i++)
		perf_records_u64(&w, i);
	perf_records_u64(&w, PERF_SAMPLE_REGS_ABI_64);
	perf_records_u64(&w, 0xa);
	perf_records_u64(&w, 0xb);
	perf_records_u64(&w, 16); /* stack */
	perf_records_u64(&w, 0xc);
	perf_records_u64(&w, 0xd);
	perf_records_u64(&w, 8);
	for (int i = 0; i < 3; i++)
		perf_records_u64(&w, 0); /* weight, data source, transaction */
	perf_records_u64(&w, PERF_SAMPLE_REGS_ABI_NONE);
	for (int i = 0; i < 4; i++)
		perf_records_u64(&w, 0); /* physical address, cgroup, page sizes */
	perf_records_u64(&w, 8); /* aux */
	perf_records_u64(&w, 0);
	perf_records_end(&w);
	assert_int_equal(decode(), 0);
	assert_int_equal(event.sample.ip, 0x1234);
	assert_int_equal(event.cpu, 6);
	assert_int_equal(event.sample.period, 4711);
	assert_int_equal(event.sample.event_id, 5);
	assert_int_equal(event.sample.regs[1], 0xb);
	assert_int_equal(load_u64(event.sample.stack), 0xc);
}

static void test_mmap2(void **state)
{
	(void)state;
	perf_put_mmap2(&w, &(struct perf_mmap_fields){
		.pid = 3, .tid = 4, .time = 5, .start = 0x1000, .len = 0x2000, .offset = 0x3000,
		.inode = 77, .generation = 88, .dev_major = 8, .dev_minor = 1, .prot = 5,
		.path = "/lib/x.so (deleted)",
	});
	assert_int_equal(decode(), 0);
	assert_int_equal(event.pid, 3);
	assert_int_equal(event.tid, 4);
	assert_int_equal(event.time, 5);
	assert_int_equal(event.mmap.start, 0x1000);
	assert_int_equal(event.mmap.len, 0x2000);
	assert_int_equal(event.mmap.offset, 0x3000);
	assert_int_equal(event.mmap.inode, 77);
	assert_int_equal(event.mmap.inode_generation, 88);
	assert_int_equal(event.mmap.dev_major, 8);
	assert_int_equal(event.mmap.dev_minor, 1);
	assert_true(event.mmap.exec);
	assert_string_equal(event.mmap.path, "/lib/x.so (deleted)");
	assert_int_equal(event.mmap.path_len, 19);
}

static void test_mmap2_without_execution(void **state)
{
	(void)state;
	perf_put_mmap2(&w, &(struct perf_mmap_fields){ .prot = 3, .path = "/x" });
	assert_int_equal(decode(), 0);
	assert_false(event.mmap.exec);
}

static void test_old_mmap_tells_data_by_its_flag(void **state)
{
	(void)state;
	perf_put_mmap(&w, &(struct perf_mmap_fields){ .path = "/x" });
	assert_int_equal(decode(), 0);
	assert_true(event.mmap.exec);
	perf_put_mmap(&w, &(struct perf_mmap_fields){
		.misc = PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_DATA, .path = "/x" });
	assert_int_equal(decode(), 0);
	assert_false(event.mmap.exec);
}

static void test_mmap2_with_build_id(void **state)
{
	uint8_t id[24] = { 20, 0, 0, 0, 0xde, 0xad };

	(void)state;
	perf_put_mmap2(&w, &(struct perf_mmap_fields){
		.misc = PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID, .prot = 5,
		.path = "/x" });
	memcpy(w.bytes.data + 40, id, sizeof(id));
	assert_int_equal(decode(), 0);
	assert_int_equal(event.mmap.build_id_len, 20);
	assert_int_equal(event.mmap.build_id[1], 0xad);
	w.bytes.data[40] = 21;
	assert_int_equal(decode(), -EBADMSG);
}

static void test_path_without_end_is_refused(void **state)
{
	(void)state;
	perf_put_mmap(&w, &(struct perf_mmap_fields){ .path = "/abcdef" });
	/* The NUL of an 8-byte name, before the 16 bytes at the end. */
	w.bytes.data[w.bytes.len - 17] = 'x';
	assert_int_equal(decode(), -EBADMSG);
}

static void test_tasks_names_losses_and_switches(void **state)
{
	(void)state;
	perf_put_task(&w, PERF_RECORD_FORK, 20, 10, 21, 11, 500);
	assert_int_equal(decode(), 0);
	assert_int_equal(event.pid, 20);
	assert_int_equal(event.tid, 21);
	assert_int_equal(event.task.ppid, 10);
	assert_int_equal(event.task.ptid, 11);
	assert_int_equal(event.time, 500);
	perf_put_comm(&w, 20, 21, 501, true, "a (b) c");
	assert_int_equal(decode(), 0);
	assert_true(event.comm.exec);
	assert_string_equal(event.comm.name, "a (b) c");
	assert_int_equal(event.comm.len, 7);
	perf_put_lost(&w, 9, 10, 502);
	assert_int_equal(decode(), 0);
	assert_int_equal(event.lost.id, 9);
	assert_int_equal(event.lost.count, 10);
	assert_int_equal(event.time, 502);
	perf_put_lost_samples(&w, 11, 503);
	assert_int_equal(decode(), 0);
	assert_int_equal(event.lost.count, 11);
	perf_put_switch(&w, 20, 21, true, 504);
	assert_int_equal(decode(), 0);
	assert_int_equal(event.tid, 21);
	assert_true(event.context_switch.out);
}

static void test_task_without_trailer_uses_its_own_time(void **state)
{
	(void)state;
	w.layout.sample_id_all = false;
	perf_put_task(&w, PERF_RECORD_EXIT, 20, 10, 21, 11, 500);
	assert_int_equal(decode(), 0);
	assert_true(event.has_time);
	assert_int_equal(event.time, 500);
	perf_put_comm(&w, 20, 21, 501, false, "x");
	assert_int_equal(decode(), 0);
	assert_false(event.has_time);
}

static void test_throttle_and_unknown_types_pass(void **state)
{
	(void)state;
	perf_records_begin(&w, PERF_RECORD_THROTTLE, 0);
	perf_records_u64(&w, 7);
	perf_records_u64(&w, 1);
	perf_records_u64(&w, 1);
	perf_records_trailer(&w, 1, 2, 8);
	perf_records_end(&w);
	assert_int_equal(decode(), 0);
	assert_int_equal(event.time, 8);
	perf_records_begin(&w, 60, 0);
	perf_records_u64(&w, 7);
	perf_records_trailer(&w, 1, 2, 9);
	perf_records_end(&w);
	assert_int_equal(decode(), 0);
	assert_int_equal(event.time, 9);
	assert_int_equal(event.pid, 1);
}

static void test_record_shorter_than_its_fields_is_refused(void **state)
{
	(void)state;
	perf_put_task(&w, PERF_RECORD_FORK, 20, 10, 21, 11, 500);
	w.bytes.len -= 8;
	perf_records_end(&w);
	assert_int_equal(decode(), -EBADMSG);
	w.bytes.len = w.start + 16;
	perf_records_end(&w);
	assert_int_equal(decode(), -EBADMSG);
	w.bytes.len = w.start + 8;
	perf_records_end(&w);
	assert_int_equal(decode(), -EBADMSG);
}

/* Whatever the bytes are, pointers stay inside of the record. */
static void check_inside(const uint8_t *record, size_t size)
{
	const struct perf_sample_data *s = &event.sample;
	const uint8_t *end = record + size;

	if (event.type != PERF_RECORD_SAMPLE)
		return;
	if (s->callchain)
		assert_true((const uint8_t *)(s->callchain + s->callchain_len) <= end);
	if (s->regs)
		assert_true((const uint8_t *)(s->regs + 17) <= end);
	if (s->stack)
		assert_true(s->stack + s->stack_len <= end);
}

static void test_mutated_records_never_lead_outside(void **state)
{
	struct random rng = { .state = 3 };
	const uint64_t chain[] = { PERF_CONTEXT_KERNEL, 1, 2 };

	(void)state;
	for (int i = 0; i < 200000; i++) {
		uint64_t *copy;
		size_t size;

		w.bytes.len = 0;
		if (i % 3 == 0)
			perf_put_sample(&w, &(struct perf_sample_fields){
				.chain = chain, .chain_len = 3, .abi = 2, .stack_used = 8,
				.stack_size = 32 });
		else if (i % 3 == 1)
			perf_put_mmap2(&w, &(struct perf_mmap_fields){ .path = "/some/path" });
		else
			perf_put_comm(&w, 1, 2, 3, false, "name");
		size = w.bytes.len;
		/* An allocation of its own, so that a sanitizer sees every step outside. */
		copy = malloc(size);
		memcpy(copy, w.bytes.data, size);
		for (int n = 1 + random_below(&rng, 3); n; n--) {
			size_t at = random_below(&rng, size);

			if (at < 6 || at > 7)
				((uint8_t *)copy)[at] = random_u64(&rng);
		}
		if (perf_record_decode(&w.layout, copy, size, &event) == 0)
			check_inside((uint8_t *)copy, size);
		free(copy);
	}
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_sample),
		CASE(test_sample_without_user_state),
		CASE(test_registers_of_32_bits_are_skipped),
		CASE(test_unknown_register_width_is_refused),
		CASE(test_more_stack_than_copied_is_refused),
		CASE(test_counts_beyond_the_record_are_refused),
		CASE(test_sample_is_consumed_exactly),
		CASE(test_every_field_of_a_foreign_sample_is_stepped_over),
		CASE(test_mmap2),
		CASE(test_mmap2_without_execution),
		CASE(test_old_mmap_tells_data_by_its_flag),
		CASE(test_mmap2_with_build_id),
		CASE(test_path_without_end_is_refused),
		CASE(test_tasks_names_losses_and_switches),
		CASE(test_task_without_trailer_uses_its_own_time),
		CASE(test_throttle_and_unknown_types_pass),
		CASE(test_record_shorter_than_its_fields_is_refused),
		CASE(test_mutated_records_never_lead_outside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
