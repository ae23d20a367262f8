/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * From a SAMPLE record to a sample in the spool: screening, the kernel's frames, the walk through
 * the user stack. Every sample that is not written is counted under a reason.
 */
#include "recorder.h"

#include <stdlib.h>

static unsigned int cpumode(const struct perf_event *event)
{
	return event->misc & PERF_RECORD_MISC_CPUMODE_MASK;
}

static bool in_kernel(unsigned int mode)
{
	return mode == PERF_RECORD_MISC_KERNEL || mode == PERF_RECORD_MISC_HYPERVISOR ||
	       mode == PERF_RECORD_MISC_GUEST_KERNEL;
}

/* False when the sample is dropped, and counted. */
static bool passes(struct spulse_recorder *rec, const struct perf_event *event)
{
	struct spulse_recording_summary *s = &rec->summary;
	unsigned int mode = cpumode(event);

	if (!event->has_ids || event->pid < 0)
		s->missing_pid_samples++;
	else if (event->tid < 0)
		s->missing_tid_samples++;
	else if (event->tid == 0)
		s->idle_tid_samples++;
	else if (!event->has_time)
		s->missing_timestamp_samples++;
	else if (event->pid == 0)
		s->missing_pid_samples++;
	else if ((mode == PERF_RECORD_MISC_KERNEL || mode == PERF_RECORD_MISC_GUEST_KERNEL) &&
		 !s->kernel_enabled)
		s->excluded_kernel_samples++;
	else
		return true;
	return false;
}

static bool is_marker(uint64_t address)
{
	return address >= (uint64_t)-4095;
}

static bool marks_kernel(uint64_t address)
{
	return address == PERF_CONTEXT_KERNEL || address == PERF_CONTEXT_HV ||
	       address == PERF_CONTEXT_GUEST_KERNEL;
}

/* Adds a frame to the list in work; false when memory ran out. */
static bool push(struct spulse_recorder *rec, size_t *n, uint32_t frame)
{
	rec->frames[(*n)++] = frame;
	return frame != UINT32_MAX;
}

static void push_marker(struct spulse_recorder *rec, size_t *n)
{
	rec->frames[(*n)++] = rec->marker;
	rec->summary.truncated_frame_markers++;
}

static bool push_address(struct spulse_recorder *rec, const struct rec_process *process, size_t *n,
			 uint64_t address, bool kernel)
{
	const struct rec_module *module = kernel ?
		modules_find_kernel(&rec->kernel_modules, address) :
		modules_find(&process->modules, address);

	return push(rec, n, modules_intern(rec, module, address, kernel));
}

/*
 * The leading run of kernel frames of a call chain. In each context the first address is where
 * the CPU was, the others are return addresses. User frames are kept in place of a walk only.
 */
static bool take_chain(struct spulse_recorder *rec, const struct rec_process *process,
		       const struct perf_sample_data *data, bool keep_user, size_t *n)
{
	bool kernel = false, first = true, leading = true;
	size_t before = *n, addresses = 0;

	for (uint64_t i = 0; i < data->callchain_len; i++) {
		uint64_t address = data->callchain[i];

		if (i == 0 || is_marker(address)) {
			kernel = marks_kernel(address);
			leading &= kernel || *n == before;
			first = true;
			if (is_marker(address))
				continue;
		}
		addresses++;
		if (!first && address)
			address--;
		first = false;
		if (*n >= REC_KERNEL_FRAMES)
			break;
		if ((kernel && leading) || (!kernel && keep_user)) {
			if (!push_address(rec, process, n, address, kernel))
				return false;
		} else {
			rec->summary.ignored_user_callchain_frames++;
		}
		leading &= kernel;
	}
	/* A chain as long as the kernel makes them goes on. Where longer ones come, another limit
	 * was set. */
	if (keep_user && rec->chain_limit && addresses == rec->chain_limit)
		push_marker(rec, n);
	return true;
}

static void count_error(struct spulse_recorder *rec, enum spulse_sample_error error)
{
	rec->summary.sample_errors[error]++;
}

static enum unw_arch arch_of(const struct spulse_recorder *rec)
{
	return rec->source->arch == PERF_ARCH_AARCH64 ? UNW_AARCH64 : UNW_X86_64;
}

/* Whether there is something to walk; what is missing is counted. */
static bool can_walk(struct spulse_recorder *rec, const struct perf_event *event,
		     struct unw_regs *regs)
{
	const struct perf_sample_data *data = &event->sample;
	bool has_stack = data->has_stack && data->stack_len;

	if (rec->user_chains && !data->has_stack)
		return false;
	if (data->has_stack && !data->stack_len && data->stack_requested)
		count_error(rec, SPULSE_SAMPLE_ERROR_STACK_READ);
	if (data->regs && has_stack) {
		if (unw_regs_from_perf(arch_of(rec), data->regs_mask, data->regs, regs))
			return true;
		count_error(rec, SPULSE_SAMPLE_ERROR_REGISTER_CAPTURE);
		return false;
	}
	if (in_kernel(cpumode(event)))
		return false;
	if (!data->regs)
		count_error(rec, SPULSE_SAMPLE_ERROR_USER_REGISTERS_MISSING);
	else if (!data->has_stack)
		count_error(rec, SPULSE_SAMPLE_ERROR_STACK_READ);
	return false;
}

static uint64_t pc_of(const struct spulse_recorder *rec, const struct unw_regs *regs)
{
	return regs->value[arch_of(rec) == UNW_AARCH64 ? 32 : 16];
}

static bool walk(struct spulse_recorder *rec, struct rec_process *process,
		 const struct perf_sample_data *data, const struct unw_regs *regs, size_t *n)
{
	struct unw_result result;

	rec->walking = process;
	unw_walk(rec->unwinder, process->space, regs, data->stack, data->stack_len, &result);
	for (uint32_t i = 0; i < result.count; i++)
		if (result.frames[i] == UINT32_MAX)
			return false;
	memcpy(rec->frames + *n, result.frames, result.count * sizeof(uint32_t));
	*n += result.count;
	if (result.has_error)
		count_error(rec, result.error);
	for (size_t i = 0; i < SPULSE_UNWIND_FALLBACK_COUNT; i++)
		rec->summary.unwind_fallbacks[i] += result.fallbacks[i];
	rec->summary.guessed_frames += result.guessed != 0;
	if (result.end == UNW_TRUNCATED)
		push_marker(rec, n);
	return true;
}

int sample_collect(struct spulse_recorder *rec, struct rec_process *process,
		   const struct perf_event *event, size_t *n, struct spulse_error **err)
{
	const struct perf_sample_data *data = &event->sample;
	struct unw_regs regs;
	bool walkable = can_walk(rec, event, &regs);
	bool kernel = in_kernel(cpumode(event));
	int r = 0;

	if (walkable || !kernel)
		r = maps_cover(rec, process, walkable ? pc_of(rec, &regs) : data->ip, err);
	if (r < 0)
		return r;
	if (!take_chain(rec, process, data, rec->user_chains && !walkable, n) ||
	    (walkable && !walk(rec, process, data, &regs, n)) ||
	    (*n == 0 && data->ip && !push_address(rec, process, n, data->ip, kernel)))
		return err_no_memory(err);
	return 0;
}

static int write_sample(struct spulse_recorder *rec, const struct perf_event *event, size_t n,
			struct spulse_error **err)
{
	const struct spulse_sample sample = {
		.timestamp_ns = event->time, .pid = event->pid, .tid = event->tid,
	};
	int r;

	if (n == 0) {
		rec->summary.empty_stack_samples++;
		return 0;
	}
	r = spool_writer_sample(rec->writer, &sample, rec->frames, n, err);
	if (r == 0)
		rec->summary.samples++;
	return r;
}

static int name_thread(struct spulse_recorder *rec, const struct perf_event *event,
		       struct spulse_error **err)
{
	struct rec_thread *thread;

	if (!rec_annotates(rec))
		return 0;
	thread = threads_find(rec, event->tid);
	if (thread && thread->sampled && thread->written == thread->name)
		return 0;
	if (!thread)
		thread = threads_add(rec, event->pid, event->tid, rec->inherits);
	return thread ? annotate_thread(rec, thread, err) : err_no_memory(err);
}

/* Names what a sample is of, where that has another name than at the sample before. */
static int name_sampled(struct spulse_recorder *rec, struct rec_process *process,
			const struct perf_event *event, struct spulse_error **err)
{
	int r = 0;

	if (unlikely(process->renamed))
		r = annotate_new_comm(rec, process, err);
	return r < 0 ? r : name_thread(rec, event, err);
}

static struct rec_process *process_of(struct spulse_recorder *rec, const struct perf_event *event,
				      struct spulse_error **err)
{
	if (!rec->last || rec->last->pid != event->pid)
		rec->last = process_get(rec, event->pid, err);
	return rec->last;
}

static int take(struct spulse_recorder *rec, const struct perf_event *event,
		struct spulse_error **err)
{
	struct rec_process *process = process_of(rec, event, err);
	size_t n = 0;
	int r;

	if (!process)
		return -(int)spulse_error_kind(*err);
	if (process->unwanted) {
		rec->summary.other_program_samples++;
		return 0;
	}
	r = name_sampled(rec, process, event, err);
	if (r == 0)
		r = sample_collect(rec, process, event, &n, err);
	return r < 0 ? r : write_sample(rec, event, n, err);
}

/* A sample at a context switch counts for the samples that its wait becomes. */
static int take_switch(struct spulse_recorder *rec, const struct perf_event *event,
		       struct spulse_error **err)
{
	struct rec_process *process;
	int r;

	if (!event->has_ids || event->pid <= 0 || event->tid <= 0 || !event->has_time)
		return 0;
	process = process_of(rec, event, err);
	if (!process)
		return -(int)spulse_error_kind(*err);
	if (process->unwanted)
		return 0;
	r = name_sampled(rec, process, event, err);
	return r < 0 ? r : offcpu_sample(rec, process, event, err);
}

int sample_take(struct spulse_recorder *rec, const struct perf_event *event,
		struct spulse_error **err)
{
	int r;

	if (event->sample.event_id == PERF_EVENT_CONTEXT_SWITCH)
		return take_switch(rec, event, err);
	/* A file may hold samples of other events, which are another profile. */
	if (event->sample.event_id != PERF_EVENT_SAMPLING) {
		rec->summary.input_other_samples++;
		return 0;
	}
	rec->summary.sample_events++;
	if (!passes(rec, event))
		return 0;
	r = take(rec, event, err);
	if (r < 0)
		rec->summary.failed_samples++;
	return r;
}

/* ---- what the unwinder asks ---- */

static uint32_t intern_user(void *data, struct unw_space *space, const struct unw_map *map,
			    uint64_t address)
{
	struct spulse_recorder *rec = data;
	const struct rec_module *module = NULL;

	(void)space;
	if (map)
		module = modules_find(&rec->walking->modules, address);
	return modules_intern(rec, module, address, false);
}

int sample_prepare(struct spulse_recorder *rec, struct spulse_error **err)
{
	const struct unw_callbacks callbacks = { .intern = intern_user,
					       .read_code = code_read,
					       .fallback = fallbacks_count,
					       .data = rec };
	const struct spulse_frame marker = spulse_frame_truncated_marker();
	int r;

	rec->frames = malloc((REC_KERNEL_FRAMES + UNW_MAX_FRAMES + 2) * sizeof(uint32_t));
	if (!rec->frames)
		return err_no_memory(err);
	r = unwinder_new(arch_of(rec), &callbacks, &rec->unwinder, err);
	if (r < 0)
		return r;
	rec->marker = spool_writer_intern(rec->writer, &marker);
	return rec->marker == UINT32_MAX ? err_no_memory(err) : offcpu_prepare(rec, err);
}
