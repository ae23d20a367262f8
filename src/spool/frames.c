/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "writer.h"

enum { INTERN_MAX = 64 };

static size_t first_place(const struct frame_table *table, struct frame_key key)
{
	return hash_pair_salted(key.kind, key.value, table->salt) & table->mask;
}

/* Where the frame is, or is to be; the search begins at `i`. */
static size_t find(const struct frame_table *table, struct frame_key key, size_t i)
{
	while (table->index[i]) {
		const struct frame_slot *slot = &table->slots.data[table->index[i] - 1];

		if (slot->value == key.value && slot->kind == key.kind)
			break;
		i = (i + 1) & table->mask;
	}
	return i;
}

static bool grow(struct frame_table *table)
{
	size_t size = table->index ? (table->mask + 1) * 2 : 1024;
	uint32_t *index = calloc(size, sizeof(*index));

	if (!index)
		return false;
	if (!table->index)
		table->salt = hash_salt();
	free(table->index);
	table->index = index;
	table->mask = size - 1;
	for (size_t i = 0; i < table->slots.len; i++) {
		const struct frame_slot *slot = &table->slots.data[i];
		struct frame_key key = { slot->kind, slot->value };

		table->index[find(table, key, first_place(table, key))] = i + 1;
	}
	return true;
}

static bool reserve_index(struct frame_table *table, size_t count)
{
	while (!table->index || (table->slots.len + count) * 2 > table->mask + 1)
		if (!grow(table))
			return false;
	return true;
}

/* There is room in the index. */
static uint32_t intern_at(struct frame_table *table, struct frame_key key, size_t place)
{
	size_t i = find(table, key, place);

	if (table->index[i])
		return table->index[i] - 1;
	if (table->slots.len == UINT32_MAX - 1 ||
	    !vec_push(&table->slots,
		      (struct frame_slot){ key.value, key.kind, FRAME_UNWRITTEN }))
		return UINT32_MAX;
	table->index[i] = table->slots.len;
	return table->slots.len - 1;
}

uint32_t frame_table_intern(struct frame_table *table, struct frame_key key)
{
	return reserve_index(table, 1) ? intern_at(table, key, first_place(table, key))
				       : UINT32_MAX;
}

static bool intern_some(struct frame_table *table, const struct frame_key *keys, size_t count,
			uint32_t *numbers)
{
	size_t places[INTERN_MAX];

	if (!reserve_index(table, count))
		return false;
	for (size_t i = 0; i < count; i++) {
		places[i] = first_place(table, keys[i]);
		__builtin_prefetch(&table->index[places[i]]);
	}
	for (size_t i = 0; i < count; i++)
		if (table->index[places[i]])
			__builtin_prefetch(&table->slots.data[table->index[places[i]] - 1]);
	for (size_t i = 0; i < count; i++) {
		numbers[i] = intern_at(table, keys[i], places[i]);
		if (numbers[i] == UINT32_MAX)
			return false;
	}
	return true;
}

bool frame_table_intern_all(struct frame_table *table, const struct frame_key *keys, size_t count,
			    uint32_t *numbers)
{
	for (size_t i = 0; i < count; i += INTERN_MAX)
		if (!intern_some(table, keys + i, MIN(count - i, (size_t)INTERN_MAX), numbers + i))
			return false;
	return true;
}

bool frame_table_reserve(struct frame_table *table, size_t count)
{
	return vec_reserve(&table->live_user, count) && vec_reserve(&table->live_kernel, count);
}

void frame_table_written(struct frame_table *table, struct frame_slot *slot)
{
	uint32_t number = slot - table->slots.data;

	slot->id = table->next_id++;
	if (slot->kind == FRAME_KIND_USER)
		table->live_user.data[table->live_user.len++] = number;
	else if (slot->kind == FRAME_KIND_KERNEL)
		table->live_kernel.data[table->live_kernel.len++] = number;
}

void frame_table_forget(struct frame_table *table, bool kernel_too)
{
	if (table->live_user.len || (kernel_too && table->live_kernel.len))
		table->epoch++;
	while (table->live_user.len)
		table->slots.data[vec_pop(&table->live_user)].id = FRAME_UNWRITTEN;
	while (kernel_too && table->live_kernel.len)
		table->slots.data[vec_pop(&table->live_kernel)].id = FRAME_UNWRITTEN;
}

void frame_table_release(struct frame_table *table)
{
	vec_free(&table->slots);
	vec_free(&table->live_user);
	vec_free(&table->live_kernel);
	free(table->index);
}
