/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef STACKPULSE_SPOOL_WRITER_H
#define STACKPULSE_SPOOL_WRITER_H

#include <stackpulse/spool.h>

/**
 * @file
 * Writing spools: record by record, or from one version of the format to the other. A writer is
 * used by one thread at a time; different writers are independent. What is passed in is copied.
 * INVALID_INPUT for what the format cannot hold, such as process ids below 1, module ids that were
 * not given out and, in version 3, paths that are not UTF-8; nothing is written then.
 */

/** Header of a new spool. */
struct spulse_spool_header {
	/** sizeof this struct, as the caller knows it. */
	size_t size;
	/** enum spulse_spool_format. */
	uint32_t format;
	/** 1: the clock origin is present (version 4 only). */
	uint32_t has_clock_origin;
	/** First header number, as stored. */
	uint64_t start_timestamp_us;
	/** Version 3: microseconds; version 4: nanoseconds. 0 = absent. */
	uint64_t interval;
	/** CLOCK_MONOTONIC at the origin. */
	uint64_t monotonic_ns;
	/** Wall time at the origin. */
	struct spulse_wall_time wall;
};

/** What spulse_spool_convert() wrote, and what the other version could not hold. */
struct spulse_convert_report {
	/** sizeof this struct, as the caller knows it. */
	size_t size;
	/** Records written. */
	uint64_t records;
	/** Samples among them. */
	uint64_t samples;
	/** JIT modules that became plain modules. */
	uint64_t jit_modules;
	/** Names of JIT symbols that were left out. */
	uint64_t jit_symbols;
	/** Paths that were no UTF-8: U+FFFD stands for what was not. */
	uint64_t paths_changed;
	/** 1: the clock origin became an anchor in microseconds at the first sample. */
	uint32_t time_reduced;
	/** 1: the interval was rounded down to microseconds. */
	uint32_t interval_rounded;
	/**
	 * 1: the clock origin and with it all wall times are gone: the first sample is not after
	 * the epoch, or is later than 64 bits of microseconds reach.
	 */
	uint32_t time_lost;
	/** 1: the interval is longer than 64 bits of nanoseconds hold, and became the longest. */
	uint32_t interval_limited;
};

SPULSE_BEGIN_DECLS

/**
 * Starts a spool and writes its header. After a failed write every call returns that error.
 * UNSUPPORTED for another version than 3 and 4.
 * @p output is copied; its close is called by spulse_spool_writer_free().
 */
SPULSE_API int spulse_spool_writer_new(const struct spulse_output *output, void *data,
				       const struct spulse_spool_header *header,
				       struct spulse_spool_writer **writer_out,
				       struct spulse_error **err);
/** Writes a module record and gives its id. */
SPULSE_API int spulse_spool_writer_module(struct spulse_spool_writer *writer,
					  const struct spulse_module_fields *fields,
					  uint32_t *id_out, struct spulse_error **err);
/**
 * Writes a JIT module record. Symbols are in the order of their addresses, within the module.
 * UNSUPPORTED in version 3.
 */
SPULSE_API int spulse_spool_writer_jit_module(struct spulse_spool_writer *writer,
					      const struct spulse_module_fields *fields,
					      const struct spulse_jit_symbol *symbols,
					      size_t count, uint32_t *id_out,
					      struct spulse_error **err);
/** Retires one module. */
SPULSE_API int spulse_spool_writer_retire_module(struct spulse_spool_writer *writer, uint32_t id,
						 struct spulse_error **err);
/** Retires all modules of a process. */
SPULSE_API int spulse_spool_writer_retire_process(struct spulse_spool_writer *writer, pid_t pid,
						  struct spulse_error **err);
/** Writes a Python runtime record. */
SPULSE_API int spulse_spool_writer_python_runtime(struct spulse_spool_writer *writer,
						  const struct spulse_python_runtime *record,
						  struct spulse_error **err);
/** Writes a sample with its frames, innermost first. No frames: nothing is written. */
SPULSE_API int spulse_spool_writer_sample(struct spulse_spool_writer *writer,
					  const struct spulse_sample *sample,
					  const struct spulse_frame *frames, size_t count,
					  struct spulse_error **err);
/** Hands everything to the output and flushes that. */
SPULSE_API int spulse_spool_writer_flush(struct spulse_spool_writer *writer,
					 struct spulse_error **err);
/** Flushes for the last time. */
SPULSE_API int spulse_spool_writer_finish(struct spulse_spool_writer *writer,
					  struct spulse_error **err);
/** Frees the writer and closes its output; NULL is allowed. Unflushed bytes are lost. */
SPULSE_API void spulse_spool_writer_free(struct spulse_spool_writer *writer);
SPULSE_DEFINE_CLEANUP(spool_writer)
/**
 * Writes what @p replay holds in @p format, record by record: ids, bindings and samples stay what
 * they are, and a cut tail is gone. The output's close is not called. @p report_out (may be NULL;
 * its size must be set) says what was lost. Errors are those of reading and writing.
 */
SPULSE_API int spulse_spool_convert(const struct spulse_replay *replay,
				    enum spulse_spool_format format,
				    const struct spulse_output *output, void *data,
				    struct spulse_convert_report *report_out,
				    struct spulse_error **err);

SPULSE_END_DECLS

#endif
