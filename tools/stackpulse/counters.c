/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "counters.h"

#include <string.h>

#include "text.h"
#include "tool.h"

/* Samples that the kernel delivered and that are not in the file. */
static const struct drop {
	size_t offset;
	const char *key, *reason;
} drops[] = {
#define DROP(field, reason_) {offsetof(struct spulse_recording_summary, field), #field, reason_}
	DROP(excluded_kernel_samples, "taken in the kernel"),
	DROP(other_program_samples, "of programs with other names"),
	DROP(idle_tid_samples, "of the idle task"),
	DROP(missing_pid_samples, "without a process id"),
	DROP(missing_tid_samples, "without a thread id"),
	DROP(missing_timestamp_samples, "without a time"),
	DROP(empty_stack_samples, "without any frame"),
	DROP(failed_samples, "because of an error"),
	DROP(queued_samples, "read but not written"),
#undef DROP
};

#define DROP_COUNT (sizeof(drops) / sizeof(drops[0]))

static uint64_t count_of(const struct spulse_recording_summary *summary, const struct drop *drop)
{
	return *(const uint64_t *)(const void *)((const char *)summary + drop->offset);
}

void counters_tell_drops(const struct spulse_recording_summary *summary)
{
	char count[32];

	for (size_t i = 0; i < DROP_COUNT; i++)
		if (count_of(summary, &drops[i]))
			tool_message("not recorded: %s samples %s",
				     text_count(count, count_of(summary, &drops[i])),
				     drops[i].reason);
}

static void json_causes(struct json *json, const struct spulse_recording_summary *summary)
{
	json_key(json, "sample_errors");
	json_begin_object(json);
	for (int i = 0; i < SPULSE_SAMPLE_ERROR_COUNT; i++)
		json_field_uint(json, spulse_sample_error_name(i), summary->sample_errors[i]);
	json_end_object(json);
	json_key(json, "unwind_fallbacks");
	json_begin_object(json);
	for (int i = 0; i < SPULSE_UNWIND_FALLBACK_COUNT; i++)
		json_field_uint(json, spulse_unwind_fallback_name(i),
				summary->unwind_fallbacks[i]);
	json_end_object(json);
}

void counters_json_modules(struct json *json, struct spulse_recorder *recorder)
{
	size_t count;
	const struct spulse_module_fallbacks *list =
		spulse_recorder_unwind_fallbacks(recorder, &count);

	json_key(json, "unwind_fallbacks_by_module");
	json_begin_array(json);
	for (size_t i = 0; i < count; i++) {
		json_begin_object(json);
		if (list[i].module)
			json_field_bytes(json, "module", list[i].module, strlen(list[i].module));
		json_field_text(json, "cause", spulse_unwind_fallback_name(list[i].cause));
		json_field_uint(json, "frames", list[i].frames);
		json_end_object(json);
	}
	json_end_array(json);
}

void counters_json(struct json *json, const struct spulse_recording_summary *summary)
{
	json_field_uint(json, "sample_events", summary->sample_events);
	json_field_uint(json, "samples", summary->samples);
	for (size_t i = 0; i < DROP_COUNT; i++)
		json_field_uint(json, drops[i].key, count_of(summary, &drops[i]));
	json_field_uint(json, "lost_events", summary->lost_events);
	json_field_uint(json, "lifecycle_gaps", summary->lifecycle_gaps);
	json_field_uint(json, "uncovered_cpus", summary->uncovered_cpus);
	json_field_uint(json, "truncated_frame_markers", summary->truncated_frame_markers);
	json_field_uint(json, "guessed_frames", summary->guessed_frames);
	json_field_uint(json, "ignored_user_callchain_frames",
			summary->ignored_user_callchain_frames);
	json_causes(json, summary);
	json_field_uint(json, "minimum_ring_buffer_bytes", summary->minimum_ring_buffer_bytes);
	json_field_uint(json, "maximum_ring_buffer_bytes", summary->maximum_ring_buffer_bytes);
	json_field_bool(json, "kernel_enabled", summary->kernel_enabled != 0);
	json_field_text(json, "sampling_event",
			summary->sampling_event == SPULSE_EVENT_CYCLES ? "cycles" : "cpu-clock");
}
