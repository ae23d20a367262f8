/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "errors.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "strbuf.h"

struct spulse_error {
	atomic_uint refs;
	enum spulse_error_kind kind;
	int errnum;
	char *message;
	char *path;
	char *domain;
	int64_t code;
	uint64_t requested, maximum;
	bool has_frequency, has_position;
	struct spulse_spool_position position;
	struct spulse_error *cause, *cleanup;
};

/* Given out when there is no memory for a real one; never freed. */
static struct spulse_error no_memory = {
	.kind = SPULSE_ERROR_NO_MEMORY,
	.errnum = ENOMEM,
	.message = (char *)"out of memory",
};

enum spulse_error_kind spulse_error_kind(const struct spulse_error *error)
{
	return error ? error->kind : SPULSE_OK;
}

const char *spulse_error_kind_name(enum spulse_error_kind kind)
{
	static const char *const names[] = {
		[SPULSE_OK] = "ok",
		[SPULSE_ERROR_IO] = "I/O",
		[SPULSE_ERROR_INVALID_INPUT] = "invalid input",
		[SPULSE_ERROR_PERMISSION] = "permission",
		[SPULSE_ERROR_TARGET_GONE] = "target gone",
		[SPULSE_ERROR_FREQUENCY_LIMIT] = "frequency limit",
		[SPULSE_ERROR_CORRUPT_SPOOL] = "corrupt spool",
		[SPULSE_ERROR_UNSUPPORTED] = "unsupported",
		[SPULSE_ERROR_NATIVE_SYMBOLIZER] = "native symbolizer",
		[SPULSE_ERROR_PROCESS_LAUNCH] = "process launch",
		[SPULSE_ERROR_NO_MEMORY] = "out of memory",
	};

	if ((unsigned int)kind >= sizeof(names) / sizeof(names[0]))
		return "unknown";
	return names[kind];
}

int spulse_error_errno(const struct spulse_error *error)
{
	return error ? error->errnum : 0;
}

const char *spulse_error_message(const struct spulse_error *error)
{
	return error ? error->message : "no error";
}

const char *spulse_error_path(const struct spulse_error *error)
{
	return error ? error->path : NULL;
}

const struct spulse_error *spulse_error_cause(const struct spulse_error *error)
{
	return error ? error->cause : NULL;
}

const struct spulse_error *spulse_error_cleanup(const struct spulse_error *error)
{
	return error ? error->cleanup : NULL;
}

bool spulse_error_frequency_limit(const struct spulse_error *error, uint64_t *requested_out,
				  uint64_t *maximum_out)
{
	if (!error || !error->has_frequency)
		return false;
	*requested_out = error->requested;
	*maximum_out = error->maximum;
	return true;
}

bool spulse_error_spool_position(const struct spulse_error *error,
				 struct spulse_spool_position *position_out)
{
	if (!error || !error->has_position)
		return false;
	*position_out = error->position;
	return true;
}

const char *spulse_error_domain(const struct spulse_error *error)
{
	return error ? error->domain : NULL;
}

int64_t spulse_error_code(const struct spulse_error *error)
{
	return error ? error->code : 0;
}

void spulse_error_free(struct spulse_error *error)
{
	if (!error || error == &no_memory || atomic_fetch_sub(&error->refs, 1) > 1)
		return;
	spulse_error_free(error->cause);
	spulse_error_free(error->cleanup);
	free(error->message);
	free(error->path);
	free(error->domain);
	free(error);
}

static bool copy_string(char **copy, const char *s)
{
	*copy = s ? strdup(s) : NULL;
	return *copy || !s;
}

/* "message" or "path: message", then ": errno text". */
static struct spulse_error *make(enum spulse_error_kind kind, int errnum, const char *path,
				 const char *format, va_list args)
{
	struct spulse_error *e = calloc(1, sizeof(*e));
	struct strbuf text = { 0 };

	if (!e)
		return &no_memory;
	atomic_init(&e->refs, 1);
	e->kind = kind;
	e->errnum = errnum;
	if (path)
		strbuf_printf(&text, "%s: ", path);
	strbuf_vprintf(&text, format, args);
	if (errnum)
		strbuf_printf(&text, ": %s", strerrordesc_np(errnum) ? strerrordesc_np(errnum)
								     : "unknown error");
	e->message = strbuf_take(&text);
	if (!e->message || !copy_string(&e->path, path)) {
		spulse_error_free(e);
		return &no_memory;
	}
	return e;
}

struct spulse_error *spulse_error_new(enum spulse_error_kind kind, int errnum, const char *path,
				      const char *domain, int64_t code, const char *format, ...)
{
	struct spulse_error *e;
	va_list args;

	va_start(args, format);
	e = make(kind == SPULSE_OK ? SPULSE_ERROR_IO : kind, errnum, path, format, args);
	va_end(args);
	if (e == &no_memory)
		return e;
	e->code = code;
	if (!copy_string(&e->domain, domain)) {
		spulse_error_free(e);
		return &no_memory;
	}
	return e;
}

/* Takes `e` over. */
static int hand_out(struct spulse_error **err, struct spulse_error *e)
{
	int r = -(int)e->kind;

	if (err)
		*err = e;
	else
		spulse_error_free(e);
	return r;
}

#define MAKE(kind, errnum, path) \
	({ \
		struct spulse_error *e_; \
		va_list args_; \
		va_start(args_, format); \
		e_ = make((kind), (errnum), (path), format, args_); \
		va_end(args_); \
		e_; \
	})

int err_set(struct spulse_error **err, enum spulse_error_kind kind, const char *format, ...)
{
	return err ? hand_out(err, MAKE(kind, 0, NULL)) : -(int)kind;
}

int err_file(struct spulse_error **err, enum spulse_error_kind kind, int errnum, const char *path,
	     const char *format, ...)
{
	return err ? hand_out(err, MAKE(kind, errnum, path)) : -(int)kind;
}

int err_io(struct spulse_error **err, int errnum, const char *path, const char *format, ...)
{
	enum spulse_error_kind kind = err_kind_of_errno(errnum);

	return err ? hand_out(err, MAKE(kind, errnum, path)) : -(int)kind;
}

int err_no_memory(struct spulse_error **err)
{
	return hand_out(err, &no_memory);
}

int err_corrupt(struct spulse_error **err, const char *path, int tag, uint64_t offset,
		const char *format, ...)
{
	struct spulse_error *e;

	if (!err)
		return -SPULSE_ERROR_CORRUPT_SPOOL;
	e = MAKE(SPULSE_ERROR_CORRUPT_SPOOL, 0, path);
	if (e != &no_memory) {
		e->has_position = true;
		e->position = (struct spulse_spool_position){ .offset = offset, .tag = tag };
	}
	return hand_out(err, e);
}

int err_frequency(struct spulse_error **err, uint64_t requested, uint64_t maximum)
{
	int r = err_set(err, SPULSE_ERROR_FREQUENCY_LIMIT,
			"sample rate %llu Hz is above the kernel's limit of %llu Hz "
			"(/proc/sys/kernel/perf_event_max_sample_rate)",
			(unsigned long long)requested, (unsigned long long)maximum);

	if (err && *err != &no_memory) {
		(*err)->has_frequency = true;
		(*err)->requested = requested;
		(*err)->maximum = maximum;
	}
	return r;
}

enum spulse_error_kind err_kind_of_errno(int errnum)
{
	switch (errnum) {
	case EACCES:
	case EPERM:
		return SPULSE_ERROR_PERMISSION;
	case ENOMEM:
		return SPULSE_ERROR_NO_MEMORY;
	case EINVAL:
		return SPULSE_ERROR_INVALID_INPUT;
	case EOPNOTSUPP:
	case ENOSYS:
		return SPULSE_ERROR_UNSUPPORTED;
	default:
		return SPULSE_ERROR_IO;
	}
}

int err_prefix(struct spulse_error **err, const char *format, ...)
{
	struct spulse_error *old, *e;
	struct strbuf text = { 0 };
	va_list args;

	if (!err || !*err)
		return -SPULSE_ERROR_IO;
	old = *err;
	if (old == &no_memory)
		return -(int)old->kind;
	va_start(args, format);
	strbuf_vprintf(&text, format, args);
	va_end(args);
	e = spulse_error_new(old->kind, 0, NULL, NULL, 0, "%s: %s",
			     text.failed ? "" : text.data, old->message);
	strbuf_release(&text);
	if (e == &no_memory)
		return -(int)old->kind;
	e->errnum = old->errnum;
	e->has_frequency = old->has_frequency;
	e->requested = old->requested;
	e->maximum = old->maximum;
	e->has_position = old->has_position;
	e->position = old->position;
	copy_string(&e->path, old->path);
	e->cause = old;
	*err = e;
	return -(int)e->kind;
}

int err_retype(struct spulse_error **err, enum spulse_error_kind kind)
{
	/* What memory ran out for is no other kind: the object says so, and so must the result. */
	if (err && *err == &no_memory)
		return -SPULSE_ERROR_NO_MEMORY;
	if (err && *err)
		(*err)->kind = kind;
	return -(int)kind;
}

int err_locate(struct spulse_error **err, int r, int tag, uint64_t offset)
{
	if (r == -SPULSE_ERROR_CORRUPT_SPOOL && err && *err && *err != &no_memory) {
		(*err)->has_position = true;
		(*err)->position = (struct spulse_spool_position){ .offset = offset, .tag = tag };
	}
	return r;
}

/* Whether `error` is `wanted` or holds it; a latched error comes back from every later call. */
static bool holds(const struct spulse_error *error, const struct spulse_error *wanted)
{
	for (; error; error = error->cause)
		if (error == wanted || (error->cleanup && holds(error->cleanup, wanted)))
			return true;
	return false;
}

void err_attach_cleanup(struct spulse_error **err, struct spulse_error *second)
{
	if (!err || !*err || *err == &no_memory || (*err)->cleanup || holds(second, *err) ||
	    holds(*err, second))
		spulse_error_free(second);
	else
		(*err)->cleanup = second;
}

struct spulse_error *err_ref(struct spulse_error *error)
{
	if (error && error != &no_memory)
		atomic_fetch_add(&error->refs, 1);
	return error;
}

int err_repeat(struct spulse_error **err, struct spulse_error *error)
{
	return hand_out(err, err_ref(error));
}
