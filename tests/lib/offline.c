/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "offline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record/options.h"
#include "record/outfile.h"

static void check(int r, struct spulse_error *err)
{
	if (r >= 0)
		return;
	fprintf(stderr, "offline: %s\n", spulse_error_message(err));
	abort();
}

void offline_init(struct offline *o, size_t streams)
{
	memset(o, 0, sizeof(*o));
	fake_source_init(&o->fake, streams);
	o->options.size = sizeof(o->options);
	o->options.follow = SPULSE_FOLLOW_NEW;
	o->options.include_kernel = true;
	o->summary.size = sizeof(o->summary);
}

void offline_start(struct offline *o)
{
	struct spulse_recorder_options resolved;
	struct rec_target target = { .fd = -1, .file = -1 };
	struct spulse_error *err = NULL;

	strcpy(o->path, "/tmp/offline-XXXXXX");
	close(mkstemp(o->path));
	target.path = o->path;
	check(options_resolve(&resolved, &o->options, &err), err);
	target.header = (struct spulse_spool_header){ .size = sizeof(target.header),
						      .format = resolved.format };
	check(recorder_from_source(&resolved, &o->fake.source, &target, &o->recorder, &err), err);
	check(output_publish(&target, &err), err);
	output_release(&target);
}

void offline_finish(struct offline *o)
{
	struct spulse_error *err = NULL;

	check(spulse_recorder_finish(o->recorder, &o->summary, &err), err);
	check(spulse_snapshot_open(o->path, &o->snapshot, &err), err);
	o->source = spulse_snapshot_source(o->snapshot);
	check(spulse_snapshot_stacks(o->snapshot, &o->stacks, &err), err);
}

void offline_release(struct offline *o)
{
	spulse_stacks_free(o->stacks);
	spulse_snapshot_free(o->snapshot);
	spulse_recorder_free(o->recorder);
	fake_source_release(&o->fake);
	unlink(o->path);
}

const char *offline_next_stack(struct offline *o)
{
	static char text[4096];
	const struct spulse_stack *stack;
	const struct spulse_frame *frame;
	struct spulse_frame_iter iter;
	size_t len = 0;

	text[0] = '\0';
	if (spulse_stacks_next(o->stacks, &stack, NULL) <= 0)
		return "none";
	iter = spulse_stack_frames(stack);
	while ((frame = spulse_frame_iter_next(&iter)) && len < sizeof(text) - 64) {
		const char *blank = len ? " " : "";

		if (spulse_frame_is_truncated_marker(frame))
			len += sprintf(text + len, "%s[cut]", blank);
		else
			len += sprintf(text + len, "%s%s:%llx", blank,
				       frame->mode == SPULSE_FRAME_KERNEL ? "kernel" : "user",
				       (unsigned long long)frame->abs_ip);
	}
	return text;
}

struct perf_event offline_event(uint32_t type, int32_t pid, int32_t tid, uint64_t time)
{
	return (struct perf_event){
		.type = type, .misc = PERF_RECORD_MISC_USER, .has_ids = true, .has_time = true,
		.pid = pid, .tid = tid, .time = time,
	};
}

struct perf_event offline_mmap(int32_t pid, uint64_t time, uint64_t start, uint64_t len,
			       uint64_t offset, const char *path)
{
	struct perf_event event = offline_event(PERF_RECORD_MMAP2, pid, pid, time);

	event.mmap = (struct perf_mmap_data){
		.start = start, .len = len, .offset = offset, .inode = 7, .dev_major = 1,
		.prot = PROT_READ | PROT_EXEC, .exec = true,
		.path = path, .path_len = strlen(path),
	};
	return event;
}

struct perf_event offline_fork(int32_t ppid, int32_t pid, int32_t tid, uint64_t time)
{
	struct perf_event event = offline_event(PERF_RECORD_FORK, pid, tid, time);

	event.task.ppid = ppid;
	event.task.ptid = ppid;
	return event;
}

struct perf_event offline_comm(int32_t pid, int32_t tid, uint64_t time, bool exec,
			       const char *name)
{
	struct perf_event event = offline_event(PERF_RECORD_COMM, pid, tid, time);

	event.comm.name = name;
	event.comm.len = strlen(name);
	event.comm.exec = exec;
	return event;
}

struct perf_event offline_sample(int32_t pid, int32_t tid, uint64_t time, uint64_t ip)
{
	struct perf_event event = offline_event(PERF_RECORD_SAMPLE, pid, tid, time);

	event.sample.ip = ip;
	return event;
}
