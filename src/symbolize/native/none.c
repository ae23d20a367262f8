/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* A build without a native backend: perf maps and kernel symbols still have names. */
#include "store.h"

const struct spulse_native_backend *spulse_native_default(void)
{
	return NULL;
}

struct native_store *native_store_new(const struct native_options *options)
{
	(void)options;
	return NULL;
}

void native_store_free(struct native_store *store)
{
	(void)store;
}

const struct image_roots *native_store_roots(const struct native_store *store)
{
	(void)store;
	return NULL;
}

void native_store_prepare(struct native_store *store, const struct native_place *places,
			  size_t count, unsigned int threads)
{
	(void)store;
	(void)places;
	(void)count;
	(void)threads;
}

bool native_store_function_start(struct native_store *store, const struct native_place *place,
				 uint64_t *start)
{
	(void)store;
	(void)place;
	(void)start;
	return false;
}

void native_store_trim(struct native_store *store)
{
	(void)store;
}

bool native_is_builtin(const struct spulse_native_backend *backend)
{
	(void)backend;
	return false;
}

void native_store_describe(struct native_store *store, const struct spulse_native_module *module,
			   struct strbuf *sb)
{
	(void)store;
	(void)module;
	strbuf_puts(sb, "this build has no native backend\n");
}
