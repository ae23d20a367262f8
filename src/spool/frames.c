/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "writer.h"

static size_t find(const struct frame_table *table, uint64_t kind, uint64_t value)
{
	size_t i = hash_two(kind, value) & table->mask;

	while (table->index[i]) {
		const struct frame_slot *slot = &table->slots.data[table->index[i] - 1];

		if (slot->value == value && slot->kind == kind)
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
	free(table->index);
	table->index = index;
	table->mask = size - 1;
	for (size_t i = 0; i < table->slots.len; i++) {
		const struct frame_slot *slot = &table->slots.data[i];

		table->index[find(table, slot->kind, slot->value)] = i + 1;
	}
	return true;
}

uint32_t frame_table_intern(struct frame_table *table, uint64_t kind, uint64_t value)
{
	size_t i;

	if ((!table->index || (table->slots.len + 1) * 2 > table->mask + 1) && !grow(table))
		return UINT32_MAX;
	i = find(table, kind, value);
	if (table->index[i])
		return table->index[i] - 1;
	if (table->slots.len == UINT32_MAX - 1 ||
	    !vec_push(&table->slots, (struct frame_slot){ value, kind, FRAME_UNWRITTEN }))
		return UINT32_MAX;
	table->index[i] = table->slots.len;
	return table->slots.len - 1;
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
