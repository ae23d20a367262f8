/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Modules on their way to a backend: the image behind a mapping is opened and validated at its
 * first lookup and looked at again in each later call, so that a file that was replaced in
 * between never mixes with what was read of the old one.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "symbolizer.h"

enum { OPEN_ATTEMPTS = 2, OPEN_IMAGES_MAX = 256 };

struct module_state *module_state_of(struct spulse_symbolizer *sym,
				     const struct spulse_module *module)
{
	uint64_t *slot = u64map_add(&sym->module_states, (uintptr_t)module, NULL);
	struct module_state *state;

	if (!slot)
		return NULL;
	if (*slot)
		return (struct module_state *)(uintptr_t)*slot;
	state = calloc(1, sizeof(*state));
	if (!state) {
		u64map_remove(&sym->module_states, (uintptr_t)module);
		return NULL;
	}
	state->module = module;
	*slot = (uintptr_t)state;
	return state;
}

static void close_image(struct spulse_symbolizer *sym, struct module_state *state)
{
	if (!state->native)
		return;
	spulse_native_module_unref(state->native);
	state->native = NULL;
	sym->open_images--;
}

static int64_t nanoseconds(const struct timespec *time)
{
	return time->tv_sec * 1000000000ll + time->tv_nsec;
}

/* Whether the open file is still what it was: not rewritten, not unlinked. */
static bool is_unchanged(const struct module_state *state)
{
	const struct image_identity *id = &state->identity;
	int fd = image_fd(state->native->image);
	struct stat st;

	if (fd < 0 || state->trusted)
		return true;
	return !fstat(fd, &st) && (uint64_t)st.st_size == id->size && st.st_ino == id->inode &&
	       major(st.st_dev) == id->dev_major && minor(st.st_dev) == id->dev_minor &&
	       nanoseconds(&st.st_mtim) == id->mtime_ns &&
	       nanoseconds(&st.st_ctim) == id->ctime_ns;
}

static bool same_identity(const struct image_identity *a, const struct image_identity *b)
{
	return a->dev_major == b->dev_major && a->dev_minor == b->dev_minor &&
	       a->inode == b->inode && a->size == b->size && a->mtime_ns == b->mtime_ns &&
	       a->ctime_ns == b->ctime_ns;
}

static void refuse(struct module_state *state, const char *why)
{
	spulse_error_free(state->refusal);
	state->refusal = NULL;
	err_set(&state->refusal, SPULSE_ERROR_UNSUPPORTED, "%s", why);
	state->unsupported = true;
}

/* Paths that never have a file. */
static bool has_file(const struct spulse_module *module)
{
	const char *path = spulse_module_path(module);

	return !spulse_module_is_kernel(module) && path[0] &&
	       (path[0] != '[' || !strcmp(path, "[vdso]"));
}

static struct module_facts facts_of(const struct spulse_module *module)
{
	static uint64_t next_id = 1ull << 62;
	uint32_t id = spulse_module_id(module);

	return (struct module_facts){
		.path = spulse_module_path(module),
		.path_len = spulse_module_path_len(module),
		.start = spulse_module_start(module),
		.end = spulse_module_end(module),
		.mapping_id = id == SPULSE_NO_MODULE ?
			__atomic_fetch_add(&next_id, 1, __ATOMIC_RELAXED) : id,
		.identity = { .device_major = spulse_module_device_major(module),
			      .device_minor = spulse_module_device_minor(module),
			      .inode = spulse_module_inode(module),
			      .inode_generation = spulse_module_inode_generation(module) },
	};
}

/* Keeps an image, whose reference is taken over, as that of a module. */
static bool keep_image(struct spulse_symbolizer *sym, struct module_state *state,
		       struct image *image, const struct module_facts *facts, uint64_t bias)
{
	state->identity = *image_identity(image);
	state->native = native_module_make(facts, image, bias, sym->store);
	if (!state->native)
		return false;
	state->opened = true;
	state->attempts = 0;
	sym->open_images++;
	return true;
}

bool module_adopt(struct spulse_symbolizer *sym, const struct spulse_module *module,
		  struct image *image)
{
	struct module_state *state = module_state_of(sym, module);
	struct module_facts facts = facts_of(module);

	if (!state) {
		image_unref(image);
		return false;
	}
	return keep_image(sym, state, image, &facts, 0);
}

/* The first opened image decides; a bias that cannot be told leaves the module without names. */
static bool accept_image(struct spulse_symbolizer *sym, struct module_state *state,
			 struct image *image)
{
	const struct spulse_module *module = state->module;
	struct module_facts facts = facts_of(module);
	uint64_t bias;

	if (state->opened && image_fd(image) >= 0 && !state->trusted &&
	    !same_identity(&state->identity, image_identity(image))) {
		image_unref(image);
		refuse(state, "the file was replaced by another one");
		return false;
	}
	if (!image_bias(image, facts.start, facts.end, spulse_module_file_offset(module), &bias)) {
		image_unref(image);
		refuse(state, "no segment of the file explains the mapping");
		return false;
	}
	return keep_image(sym, state, image, &facts, bias);
}

/* Makes sure that the validated image is open. *retry: it may be there later. */
static bool ensure_image(struct spulse_symbolizer *sym, struct module_state *state, bool *retry)
{
	struct image *image = NULL;

	if (state->unsupported)
		return false;
	if (state->native && state->checked == sym->call)
		return true;
	if (state->failed == sym->call) {
		*retry = true;
		return false;
	}
	if (state->native && !is_unchanged(state))
		close_image(sym, state);
	state->checked = sym->call;
	if (state->native)
		return true;
	switch (module_image(sym, state, &image)) {
	case IMAGE_OK:
		return accept_image(sym, state, image);
	case IMAGE_RETRY:
		state->failed = sym->call;
		state->unsupported = ++state->attempts >= OPEN_ATTEMPTS;
		*retry = !state->unsupported;
		return false;
	case IMAGE_UNSUPPORTED:
		break;
	}
	state->unsupported = true;
	return false;
}

bool module_lookup(struct spulse_symbolizer *sym, struct pending *pending,
		   const struct spulse_module *module)
{
	uint64_t ip = pending->frame->abs_ip;
	struct module_state *state;
	bool retry = false;
	uint64_t relative;

	if (!sym->backend || !has_file(module) ||
	    spulse_module_pid(module) != pending->process->pid ||
	    ip < spulse_module_start(module) || ip >= spulse_module_end(module))
		return false;
	state = module_state_of(sym, module);
	if (!state)
		return false;
	if (!ensure_image(sym, state, &retry)) {
		if (retry)
			pending->flags |= FRAME_PROVISIONAL;
		return false;
	}
	if (ip < state->native->base.runtime)
		return false;
	relative = ip - state->native->base.runtime;
	pending->lookup = (struct spulse_native_lookup){
		.pid = pending->process->pid,
		.module = state->native,
		.address = ip,
		.relative = relative,
		.image_address = state->native->base.file + relative,
	};
	pending->has_lookup = pending->lookup.image_address >= relative;
	return pending->has_lookup;
}

struct module_state *module_open(struct spulse_symbolizer *sym, const struct spulse_module *module)
{
	struct module_state *state = module_state_of(sym, module);
	bool retry = false;

	if (state && has_file(module))
		ensure_image(sym, state, &retry);
	return state;
}

void module_retire(struct spulse_symbolizer *sym, const struct spulse_module *module)
{
	uint64_t *slot = u64map_get(&sym->module_states, (uintptr_t)module);
	struct module_state *state;
	uint64_t *known;

	if (!slot)
		return;
	state = (struct module_state *)(uintptr_t)*slot;
	known = u64map_get(&sym->processes, spulse_module_pid(module));
	if (state->native && known && sym->backend->retire_module) {
		struct process *process = (struct process *)(uintptr_t)*known;

		if (process->backend_open)
			sym->backend->retire_module(process->backend, state->native);
	}
	close_image(sym, state);
	spulse_error_free(state->refusal);
	free(state);
	u64map_remove(&sym->module_states, (uintptr_t)module);
}

void modules_trim(struct spulse_symbolizer *sym)
{
	struct u64map_slot *slot;
	size_t i = 0;

	if (sym->open_images <= OPEN_IMAGES_MAX)
		return;
	while (sym->open_images > OPEN_IMAGES_MAX / 2 &&
	       (slot = u64map_next(&sym->module_states, &i))) {
		struct module_state *state = (struct module_state *)(uintptr_t)slot->value;

		if (state->checked != sym->call)
			close_image(sym, state);
	}
}

void symbolizer_release_modules(struct spulse_symbolizer *sym)
{
	struct u64map_slot *slot;
	size_t i = 0;

	while ((slot = u64map_next(&sym->module_states, &i))) {
		struct module_state *state = (struct module_state *)(uintptr_t)slot->value;

		close_image(sym, state);
		spulse_error_free(state->refusal);
		free(state);
	}
	u64map_release(&sym->module_states);
}
