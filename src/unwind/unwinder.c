/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The unwinder object: the rule cache, the conversion of perf's registers, and the entry to the
 * walks.
 */
#include "walk.h"

#include <stdlib.h>

enum {
	FIRST_SETS = 1 << 9,
	MAX_SETS = 1 << 15, /* 2 MiB, for 65,536 addresses */
	GROWTH = 4,
	PERF_X86_IP = 8,
	PERF_ARM_PC = 32,
};

/* perf's number of each DWARF register: uapi/asm/perf_regs.h orders them its own way. */
static const uint8_t perf_x86[] = {0,  3,  2,  1,  4,  5,  6,  7,	   16,
				   17, 18, 19, 20, 21, 22, 23, PERF_X86_IP};

static bool take_register(uint64_t mask, const uint64_t *values, unsigned int perf, uint64_t *value)
{
	if (!(mask >> perf & 1))
		return false;
	*value = values[__builtin_popcountll(mask & ((UINT64_C(1) << perf) - 1))];
	return true;
}

bool unw_regs_from_perf(enum unw_arch arch, uint64_t mask, const uint64_t *values,
			struct unw_regs *regs)
{
	bool x86 = arch == UNW_X86_64;
	unsigned int count = x86 ? ARRAY_LEN(perf_x86) : UNW_REGS;
	uint64_t needed = x86 ? 1 << CFI_X86_RSP | 1 << CFI_X86_RA
			      : UINT64_C(1) << CFI_ARM_SP | UINT64_C(1) << PERF_ARM_PC;

	regs->known = 0;
	for (unsigned int i = 0; i < count; i++)
		if (take_register(mask, values, x86 ? perf_x86[i] : i, &regs->value[i]))
			regs->known |= UINT64_C(1) << i;
	return (regs->known & needed) == needed;
}

/*
 * The cache grows with what it holds, so that the few addresses of most programs lie together on
 * few pages and stay in the processor's own caches. Without memory it stays as it is.
 */
static bool resize_cache(struct unwinder *u, size_t count)
{
	size_t bytes = count * sizeof(struct cache_set), old = u->set_count;
	struct cache_set *sets = aligned_alloc(_Alignof(struct cache_set), bytes), *from = u->sets;

	if (!sets)
		return false;
	memset(sets, 0, bytes);
	u->sets = sets;
	u->set_count = count;
	u->set_mask = bytes - sizeof(struct cache_set);
	for (size_t i = 0; i < 2 * old; i++) {
		const struct cache_entry *e = &from[i / 2].way[i % 2];
		struct cache_set *set = cache_set(u, e->look + 1, cache_seed(e->tag));

		if (e->tag)
			set->way[set->way[0].tag != 0] = *e;
	}
	free(from);
	return true;
}

int unwinder_new(enum unw_arch arch, const struct unw_callbacks *callbacks, struct unwinder **out,
		 struct spulse_error **err)
{
	struct unwinder *u = calloc(1, sizeof(*u));

	if (!u)
		return err_no_memory(err);
	if (!resize_cache(u, FIRST_SETS)) {
		free(u);
		return err_no_memory(err);
	}
	u->arch = arch;
	u->callbacks = *callbacks;
	u->address_mask = (UINT64_C(1) << 48) - 1;
	*out = u;
	return 0;
}

void unwinder_free(struct unwinder *u)
{
	if (!u)
		return;
	free(u->sets);
	free(u);
}

void unwinder_set_address_mask(struct unwinder *u, uint64_t mask)
{
	u->address_mask = mask;
}

/* Memory without an image: generated code, which only the target itself can show. */
static rule_t rule_of_memory(struct unwinder *u, struct unw_space *space, const struct unw_map *map,
			     uint64_t look)
{
	static const uint16_t before[] = {64, 16, 0}, behind[] = {CODE_BEHIND, 64, 16};
	struct code_window w = {0};

	if (!map || !u->callbacks.read_code)
		return rule_none(SPULSE_UNWIND_FALLBACK_NO_MODULE, HINT_UNKNOWN);
	for (size_t i = 0; i < ARRAY_LEN(before) && !w.len; i++) {
		/* One mapping's bytes only: fewer where it begins or ends. */
		size_t front = MIN(before[i], look - map->start);
		size_t back = MIN(behind[i], map->end - look);

		if (!u->callbacks.read_code(u->callbacks.data, space, look - front, w.bytes,
					    front + back))
			continue;
		w.before = front;
		w.len = front + back;
	}
	return w.len ? guess_rule(u->arch, &w, SPULSE_UNWIND_FALLBACK_NO_MODULE)
		     : rule_none(SPULSE_UNWIND_FALLBACK_NO_MODULE, HINT_UNKNOWN);
}

/* Takes a rule of the common kinds apart. */
static void set_quick(struct cache_entry *e)
{
	unsigned int kind = rule_kind(e->rule), cell = rule_cell(e->rule, 0);

	if ((kind != RULE_SP && kind != RULE_FP) || (e->rule & (RULE_FP_LOST | RULE_FP_AT_FP)))
		return;
	e->rule |= RULE_QUICK;
	e->cfa_add = (int32_t)(8 * rule_n(e->rule));
	e->fp_add = cell == RULE_UNSAVED ? FP_NOT_SAVED : -16 - 8 * (int32_t)cell;
}

const struct cache_entry *cache_fill(struct unwinder *u, struct unw_space *space, uint64_t look)
{
	struct cache_set *set;
	const struct unw_map *map = unw_space_find(space, look);
	struct cache_entry e = {.look = look, .tag = space->tag};

	e.rule = map && map->image ? unw_image_rule(map->image, look - map->bias)
				   : rule_of_memory(u, space, map, look);
	if (u->callbacks.intern && rule_kind(e.rule) != RULE_UNCALLED)
		e.frame = u->callbacks.intern(u->callbacks.data, space, map, look);
	if (u->arch == UNW_X86_64)
		set_quick(&e);
	if (!map || e.frame == UINT32_MAX) {
		u->uncached = e;
		return &u->uncached;
	}
	if (++u->filled > u->set_count && u->set_count < MAX_SETS)
		resize_cache(u, u->set_count * GROWTH);
	set = cache_set(u, look + 1, cache_seed(space->tag));
	set->way[1] = set->way[0];
	set->way[0] = e;
	return &set->way[0];
}

void unw_walk(struct unwinder *u, struct unw_space *space, const struct unw_regs *regs,
	      const uint8_t *stack, size_t stack_len, struct unw_result *result)
{
	bool x86 = u->arch == UNW_X86_64;
	struct walk w;

	w.unwinder = u;
	w.space = space;
	w.result = result;
	w.base = regs;
	w.base_frame = 0;
	w.n = 0;
	w.sp = regs->value[x86 ? CFI_X86_RSP : CFI_ARM_SP];
	w.look = regs->value[x86 ? CFI_X86_RA : PERF_ARM_PC];
	w.lr = 0;
	w.lr_known = false;
	w.exact = true;
	w.unreadable = false;
	w.stack = stack;
	w.stack_start = w.sp;
	/* No stack goes around the end of memory. */
	stack_len = MIN(stack_len, -w.sp - 1);
	w.readable = stack_len >= 8 ? stack_len - 7 : 0;
	*result = (struct unw_result){0};
	if (x86)
		walk_x86_64(&w);
	else
		walk_aarch64(&w);
	result->frames = u->frames;
	result->addresses = u->addresses;
	result->count = w.n;
}
