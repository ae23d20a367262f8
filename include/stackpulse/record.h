/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef STACKPULSE_RECORD_H
#define STACKPULSE_RECORD_H

#include <stackpulse/common.h>

/**
 * @file
 * The recorder: samples the stacks of one or more processes into a spool. There is no hidden
 * thread: whoever owns the recorder polls it, at least several times a second. A recorder is used
 * by one thread at a time and does not survive fork(). After a terminal error (the output failed,
 * ring data are malformed) every call returns that error, except spulse_recorder_finish() and
 * spulse_recorder_free(), which still do their work.
 */

struct spulse_recorder;
struct spulse_output;
struct spulse_tail;

/** Largest user stack copy per sample in bytes; the kernel's limit. */
#define SPULSE_MAX_SAMPLE_USER_STACK 65528

/** How to attach. */
enum spulse_attach_mode {
	/** The target runs on undisturbed; mappings may change while they are read. */
	SPULSE_ATTACH_RUNNING = 0,
	/**
	 * The target is stopped for a moment, so that no thread and no mapping is missed. It runs
	 * on even if the recorder is killed meanwhile. Blocking calls such as epoll_wait() may
	 * return EINTR in the target.
	 */
	SPULSE_ATTACH_STOP = 1,
	/**
	 * Sampling starts with the target's next execve: for a suspended launch. A target that
	 * never executes anything is active until it ends and gives no sample.
	 */
	SPULSE_ATTACH_ON_EXEC = 2,
};

/** Which processes besides the target are recorded. */
enum spulse_follow {
	/** None. */
	SPULSE_FOLLOW_NONE = 0,
	/** Children that are started from now on, and theirs. */
	SPULSE_FOLLOW_NEW = 1,
	/** Also those that are alive now. */
	SPULSE_FOLLOW_DESCENDANTS = 2,
};

/** What makes the kernel take a sample. */
enum spulse_sampling_event {
	/** Hardware cycles, or the CPU clock where there is no such counter. */
	SPULSE_EVENT_AUTO = 0,
	/** Hardware cycles only. */
	SPULSE_EVENT_CYCLES = 1,
	/** The kernel's CPU clock. */
	SPULSE_EVENT_CPU_CLOCK = 2,
};

/** How Python processes are recognised. */
enum spulse_python_mode {
	/** By their binary and by whether they write a perf map. */
	SPULSE_PYTHON_AUTO = 0,
	/** Not at all. */
	SPULSE_PYTHON_OFF = 1,
	/** Every Python process counts as one that writes a perf map. */
	SPULSE_PYTHON_PERFMAP = 2,
};

/** How to record. All-zero is the default. Checked before the target is touched. */
struct spulse_recorder_options {
	/** sizeof this struct, as the caller knows it. */
	size_t size;
	/** Samples per second of CPU time; 0 = 1000. */
	uint32_t frequency;
	/** Bytes of user stack per sample, rounded up to 8; 0 = 32768; at most 65528. */
	uint32_t stack_size;
	/**
	 * Size of each CPU's ring in samples of that stack size; 0 = those of a quarter of a
	 * second, of all CPUs together at most 32 MiB while each ring holds 8 samples.
	 */
	uint32_t ring_buffer_stacks;
	/** enum spulse_follow. */
	uint32_t follow;
	/** enum spulse_sampling_event. */
	uint32_t sampling_event;
	/** enum spulse_spool_format; 0 = version 4. */
	uint32_t format;
	/** enum spulse_python_mode. */
	uint32_t python;
	/** As many samples per second as the kernel permits; not together with frequency. */
	bool frequency_maximum;
	/** Record kernel frames where the kernel permits it. */
	bool include_kernel;
	/** Add names, build IDs, host and counters to the spool, in a form old readers skip. */
	bool annotate;
	/** Free the spool's pages as its tail consumes them. */
	bool disposable;
	/**
	 * Record every process of the machine; the process that is attached only says whose end
	 * is told by root_active, and may be 0. PERMISSION without the right to do so.
	 */
	bool system_wide;
	/**
	 * Also record time that threads spend blocked: each wait becomes as many samples as the
	 * sampling interval fits into it, with a frame in the kernel module "[off-cpu]" at their
	 * inner end, written when the wait is over. PERMISSION where the kernel does not permit it.
	 */
	bool off_cpu;
	/** Zero. */
	bool unused[2];
	/** Version 3 only: wall-clock anchor, microseconds since the epoch; 0 = none. */
	uint64_t start_timestamp_us;
	/** Version 3 only: stored interval in microseconds; 0 = none. */
	uint64_t sample_interval_us;
	/** How often poll makes samples visible to tails; 0 = 500 ms. */
	int64_t publish_interval_ns;
	/**
	 * A pattern as of fnmatch(3): only processes with such a name (as in /proc/PID/comm) are
	 * recorded, out of the target, those that are followed, or the whole machine. Samples of
	 * others are counted as other_program_samples. NULL = every process. Borrowed for the call.
	 */
	const char *comm;
};

/** What became of an attach. */
enum spulse_attach_outcome {
	/** The process is recorded from now on. */
	SPULSE_ATTACHED = 0,
	/** It was recorded already. */
	SPULSE_ALREADY_ATTACHED = 1,
	/** It ended before it could be attached. */
	SPULSE_ATTACH_EXITED = 2,
};

/** What became of a refresh. */
enum spulse_refresh_outcome {
	/** The thread list is current. */
	SPULSE_REFRESHED = 0,
	/** The process ended. */
	SPULSE_REFRESH_EXITED = 1,
};

/** Why a sample's user stack is missing or cut. */
enum spulse_sample_error {
	/** Registers were incomplete. */
	SPULSE_SAMPLE_ERROR_REGISTER_CAPTURE = 0,
	/** No stack bytes were captured. */
	SPULSE_SAMPLE_ERROR_STACK_READ = 1,
	/** The walk left the captured stack bytes. */
	SPULSE_SAMPLE_ERROR_STACK_TRUNCATED = 2,
	/** A step changed neither code address nor stack pointer. */
	SPULSE_SAMPLE_ERROR_DID_NOT_ADVANCE = 3,
	/** A return address was null where one is required. */
	SPULSE_SAMPLE_ERROR_RETURN_ADDRESS_NULL = 4,
	/** A step would have moved the stack pointer down. */
	SPULSE_SAMPLE_ERROR_MOVED_BACKWARDS = 5,
	/** Address arithmetic overflowed. */
	SPULSE_SAMPLE_ERROR_INTEGER_OVERFLOW = 6,
	/** A user-mode sample came without registers. */
	SPULSE_SAMPLE_ERROR_USER_REGISTERS_MISSING = 7,
};

/** Number of enum spulse_sample_error values. */
#define SPULSE_SAMPLE_ERROR_COUNT 8

/** Why a frame was found through the frame pointer instead of unwind tables. */
enum spulse_unwind_fallback {
	/** The address is in no module with tables. */
	SPULSE_UNWIND_FALLBACK_NO_MODULE = 0,
	/** The module has no unwind tables. */
	SPULSE_UNWIND_FALLBACK_NO_UNWIND_DATA = 1,
	/** The module's search table does not cover the address. */
	SPULSE_UNWIND_FALLBACK_EH_FRAME_HDR_LOOKUP = 2,
	/** Our own index does not cover the address. */
	SPULSE_UNWIND_FALLBACK_CFI_INDEX_LOOKUP = 3,
	/** The table entry is unreadable. */
	SPULSE_UNWIND_FALLBACK_FDE_READ = 4,
	/** The entry does not cover the address, or its rules cannot be evaluated. */
	SPULSE_UNWIND_FALLBACK_UNWIND_INFO = 5,
	/** The rules move the stack pointer down. */
	SPULSE_UNWIND_FALLBACK_MOVED_BACKWARDS = 6,
	/** The rules lead nowhere. */
	SPULSE_UNWIND_FALLBACK_DID_NOT_ADVANCE = 7,
	/** The frame's address cannot be computed. */
	SPULSE_UNWIND_FALLBACK_NO_CFA = 8,
	/** The return address cannot be found. */
	SPULSE_UNWIND_FALLBACK_NO_RETURN_ADDRESS = 9,
	/** The frame pointer cannot be found. */
	SPULSE_UNWIND_FALLBACK_NO_FRAME_POINTER = 10,
	/** Another table format; does not occur on Linux. */
	SPULSE_UNWIND_FALLBACK_OTHER_FORMAT = 11,
};

/** Number of enum spulse_unwind_fallback values. */
#define SPULSE_UNWIND_FALLBACK_COUNT 12

/** Counters of a recording. Set size before a call that fills it. */
struct spulse_recording_summary {
	/** sizeof this struct, as the caller knows it. */
	size_t size;
	/** SAMPLE records that the kernel delivered. */
	uint64_t sample_events;
	/** Samples written to the spool. */
	uint64_t samples;
	/** Records that the kernel dropped because a ring was full. */
	uint64_t lost_events;
	/** How often such a loss may have hidden forks or mappings. */
	uint64_t lifecycle_gaps;
	/** Whether kernel frames are recorded: asked for and not refused. */
	uint64_t kernel_enabled;
	/** Smallest ring in bytes. */
	uint64_t minimum_ring_buffer_bytes;
	/** Largest ring in bytes. */
	uint64_t maximum_ring_buffer_bytes;
	/** Samples dropped: without a valid process id. */
	uint64_t missing_pid_samples;
	/** Samples dropped: without a valid thread id. */
	uint64_t missing_tid_samples;
	/** Samples dropped: of the idle task. */
	uint64_t idle_tid_samples;
	/** Samples dropped: without a time. */
	uint64_t missing_timestamp_samples;
	/** Samples dropped: no frame at all. */
	uint64_t empty_stack_samples;
	/** Samples that end with the truncation marker. */
	uint64_t truncated_frame_markers;
	/** User frames of the kernel's own call chains, which are not used. */
	uint64_t ignored_user_callchain_frames;
	/** Samples dropped: taken in the kernel while kernel frames are off. */
	uint64_t excluded_kernel_samples;
	/** Samples read but not yet written. */
	uint64_t queued_samples;
	/** Samples dropped because of an error. */
	uint64_t failed_samples;
	/** Samples whose stack has at least one frame found by a heuristic guess. */
	uint64_t guessed_frames;
	/** By enum spulse_sample_error. */
	uint64_t sample_errors[16];
	/** By enum spulse_unwind_fallback. */
	uint64_t unwind_fallbacks[24];
	/** enum spulse_sampling_event in use: CYCLES or CPU_CLOCK. */
	uint64_t sampling_event;
	/** Samples dropped: of processes whose name was not asked for. */
	uint64_t other_program_samples;
	/** CPUs that came online during the recording and cannot be sampled. */
	uint64_t uncovered_cpus;
	/** Whether a file that was imported ends in the middle, as that of a killed writer. */
	uint64_t input_cut;
	/** Samples of further events in a file that was imported; not in sample_events. */
	uint64_t input_other_samples;
	/** Records in a file that was imported that belong to no event that it describes. */
	uint64_t input_unknown_records;
};

/** Result of one poll. Set size before the call. */
struct spulse_poll_summary {
	/** sizeof this struct, as the caller knows it. */
	size_t size;
	/** Samples written during the call. */
	uint64_t samples;
	/** Losses noticed during the call. */
	uint64_t lost_events;
	/** Recorded processes that are alive. */
	uint32_t active_processes;
	/** Whether the first target is alive. */
	bool root_active;
	/** Whether another poll would not wait. */
	bool pending_events;
	/** Zero. */
	uint16_t unused;
};

/** What one thread lost. */
struct spulse_loss {
	/** Process; -1 = unknown, as it may be when every process is recorded. */
	pid_t pid;
	/** Thread; -1 = unknown. */
	pid_t tid;
	/** Records that found no room. */
	uint64_t lost;
};

/** Frames of one module that were found by the frame pointer for one cause. */
struct spulse_module_fallbacks {
	/** Path as in the recording, of all processes that map it; NULL: memory of no module. */
	const char *module;
	/** Why the tables did not help. */
	enum spulse_unwind_fallback cause;
	/** Zero. */
	uint32_t unused;
	/** How often. */
	uint64_t frames;
};

/** How to read another profiler's file. All-zero is the default. */
struct spulse_import_options {
	/** sizeof this struct, as the caller knows it. */
	size_t size;
	/** enum spulse_spool_format; 0 = version 4. */
	uint32_t format;
	/** 1: add names, build IDs and host to the spool, in a form old readers skip. */
	uint32_t annotate;
};

SPULSE_BEGIN_DECLS

/**
 * Makes @p options all-zero, which is the default, but for their size: what SPULSE_OPTS() does, for
 * languages that cannot use that. @p size is sizeof the struct as the caller knows it.
 */
SPULSE_API void spulse_recorder_options_init(struct spulse_recorder_options *options, size_t size);
/** As spulse_recorder_options_init(). */
SPULSE_API void spulse_import_options_init(struct spulse_import_options *options, size_t size);

/** The kernel's limit for the sample rate, in Hz. */
SPULSE_API int spulse_max_sample_rate(uint32_t *hz_out, struct spulse_error **err);

/**
 * Opens the events of process @p pid, creates the spool @p path (mode 0600, an existing file is
 * replaced) and starts sampling. INVALID_INPUT for options or ids out of range or when @p pid is
 * a thread of another process, TARGET_GONE, PERMISSION (the message names the setting and the
 * change that helps), FREQUENCY_LIMIT, UNSUPPORTED (kernel before 6.0). No file is left behind
 * by a failed attach.
 */
SPULSE_API int spulse_recorder_attach(pid_t pid, const char *path, enum spulse_attach_mode mode,
				      const struct spulse_recorder_options *opts,
				      struct spulse_recorder **recorder_out,
				      struct spulse_error **err);
/** As spulse_recorder_attach(), writing to @p output (copied). No tail then. */
SPULSE_API int spulse_recorder_attach_output(pid_t pid, const struct spulse_output *output,
					     void *data, enum spulse_attach_mode mode,
					     const struct spulse_recorder_options *opts,
					     struct spulse_recorder **recorder_out,
					     struct spulse_error **err);
/**
 * As spulse_recorder_attach(), writing to the empty regular file @p fd, which must be writable
 * and not in append mode, else INVALID_INPUT. The descriptor is duplicated.
 */
SPULSE_API int spulse_recorder_attach_fd(pid_t pid, int fd, enum spulse_attach_mode mode,
					 const struct spulse_recorder_options *opts,
					 struct spulse_recorder **recorder_out,
					 struct spulse_error **err);
/** Adds one more process; errors as of spulse_recorder_attach(). One that ended is no error. */
SPULSE_API int spulse_recorder_attach_process(struct spulse_recorder *recorder, pid_t pid,
					      enum spulse_attach_mode mode,
					      enum spulse_attach_outcome *outcome_out,
					      struct spulse_error **err);
/** Looks for threads that were not noticed. INVALID_INPUT for a process not attached. */
SPULSE_API int spulse_recorder_refresh_threads(struct spulse_recorder *recorder, pid_t pid,
					       enum spulse_refresh_outcome *outcome_out,
					       struct spulse_error **err);
/**
 * Waits for samples, unwinds and writes them. Returns early with 0 when a signal arrives. IO when
 * the output cannot be written or ring data are malformed, INVALID_INPUT after a finish.
 *
 * @param timeout_ns  -1 waits for ever, 0 does not wait
 * @param poll_out    may be NULL
 */
SPULSE_API int spulse_recorder_poll(struct spulse_recorder *recorder, int64_t timeout_ns,
				    struct spulse_poll_summary *poll_out,
				    struct spulse_error **err);
/** Result of the last poll. */
SPULSE_API void spulse_recorder_last_poll(const struct spulse_recorder *recorder,
					  struct spulse_poll_summary *poll_out);
/** Writes everything that happened until now and makes it visible to readers. */
SPULSE_API int spulse_recorder_flush(struct spulse_recorder *recorder, struct spulse_error **err);
/** Goes on after spulse_recorder_disable(). */
SPULSE_API int spulse_recorder_enable(struct spulse_recorder *recorder,
				      struct spulse_error **err);
/** Pauses sampling. */
SPULSE_API int spulse_recorder_disable(struct spulse_recorder *recorder,
				       struct spulse_error **err);
/** Whether a poll would not wait. */
SPULSE_API bool spulse_recorder_has_pending_events(const struct spulse_recorder *recorder);
/** An epoll descriptor that becomes readable when there is something to poll. Borrowed. */
SPULSE_API int spulse_recorder_fd(const struct spulse_recorder *recorder);
/** Whether @p pid is recorded and alive: 1 or 0. */
SPULSE_API int spulse_recorder_process_is_active(struct spulse_recorder *recorder, pid_t pid,
						 struct spulse_error **err);
/** Whether a recorded process other than @p pid is alive: 1 or 0. */
SPULSE_API int spulse_recorder_has_active_processes_except(struct spulse_recorder *recorder,
							   pid_t pid,
							   struct spulse_error **err);
/** How many recorded processes are alive. */
SPULSE_API int spulse_recorder_active_process_count(struct spulse_recorder *recorder,
						    size_t *count_out,
						    struct spulse_error **err);
/** The counters now; set summary->size first. */
SPULSE_API void spulse_recorder_summary(const struct spulse_recorder *recorder,
					struct spulse_recording_summary *summary);
/**
 * Losses by thread, the largest first; their sum is what the kernel counted. A thread that shares
 * the events of the one that made it gets its part by who filled the ring, which is exact to a few
 * records. Lives until the next call on @p recorder; NULL with a count of 0 without losses.
 */
SPULSE_API const struct spulse_loss *spulse_recorder_losses(struct spulse_recorder *recorder,
							    size_t *count_out);
/**
 * The summary's unwind_fallbacks by module and cause, the most frequent first. Lives until the next
 * call on @p recorder; NULL with a count of 0 without any, or when memory ran out.
 */
SPULSE_API const struct spulse_module_fallbacks *
spulse_recorder_unwind_fallbacks(struct spulse_recorder *recorder, size_t *count_out);
/**
 * Stops sampling, writes what is left and completes the spool. @p summary_out (may be NULL) is
 * filled on failure too. A second finish is INVALID_INPUT.
 */
SPULSE_API int spulse_recorder_finish(struct spulse_recorder *recorder,
				      struct spulse_recording_summary *summary_out,
				      struct spulse_error **err);
/**
 * The one reader within this process, for a second thread. INVALID_INPUT for a second one, and for
 * a recording that was attached with an output. Free it with spulse_tail_free(), before or after
 * the recorder.
 */
SPULSE_API int spulse_recorder_tail(struct spulse_recorder *recorder,
				    struct spulse_tail **tail_out, struct spulse_error **err);
/** Stops sampling and frees; NULL is allowed. What was not finished or flushed may be lost. */
SPULSE_API void spulse_recorder_free(struct spulse_recorder *recorder);
SPULSE_DEFINE_CLEANUP(recorder)

/**
 * Reads a file of Linux perf ("perf record", also its piped and compressed output; "-" is the
 * standard input), unwinds its user stacks with the files that it names and writes the spool
 * @p output. Files with another build ID than the recorded one are not used. A file without user
 * stacks keeps its call chains. No spool is left behind by a failed import. @p summary_out may be
 * NULL. IO for a file that is unreadable, INVALID_INPUT for one that is malformed (the message has
 * path, offset and reason), UNSUPPORTED for what it asks for and this version cannot do.
 */
SPULSE_API int spulse_import_perf_data(const char *input, const char *output,
				       const struct spulse_import_options *opts,
				       struct spulse_recording_summary *summary_out,
				       struct spulse_error **err);

/** Short name, for example "native-stack-truncated". */
SPULSE_API const char *spulse_sample_error_name(enum spulse_sample_error error);
/** One sentence for people. */
SPULSE_API const char *spulse_sample_error_description(enum spulse_sample_error error);
/** Short name, for example "no-module". */
SPULSE_API const char *spulse_unwind_fallback_name(enum spulse_unwind_fallback fallback);
/** One sentence for people. */
SPULSE_API const char *spulse_unwind_fallback_description(enum spulse_unwind_fallback fallback);
/** Sum of sample_errors. */
SPULSE_API uint64_t
spulse_summary_sample_errors(const struct spulse_recording_summary *summary);
/** Sum of unwind_fallbacks. */
SPULSE_API uint64_t
spulse_summary_unwind_fallbacks(const struct spulse_recording_summary *summary);

SPULSE_END_DECLS

#endif
