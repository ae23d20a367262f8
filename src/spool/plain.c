/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Frames and stack nodes that are plainly right, taken without the decoder's words for what could
 * be wrong. Whatever is not is left to it.
 */
#include "decode.h"

static bool node_fits(const struct spulse_source *source, uint64_t expected, uint64_t id,
		      uint64_t prefix, uint64_t frame)
{
	return id == expected && id < NODE_ROOT && (prefix < id || prefix == NODE_ROOT) &&
	       frame < source->frames.len;
}

/* Many nodes at once, if all of them are right. */
static bool take_node_block(struct decoder *d)
{
	struct spulse_source *source = d->source;
	struct three_numbers nodes[64];
	const uint8_t *p = d->p;
	size_t count = run_take_numbers(&p, d->end, TAG_STACK_NODE, nodes,
					sizeof(nodes) / sizeof(*nodes));
	bool right = count > 0;

	for (size_t i = 0; i < count; i++)
		right &= node_fits(source, source->nodes.len + i, nodes[i].first, nodes[i].second,
				   nodes[i].third);
	if (!right || !source_reserve_nodes(source, count))
		return false;
	for (size_t i = 0; i < count; i++)
		source_push_node(source, nodes[i].second, nodes[i].third);
	d->p = p;
	return true;
}

/* The three numbers of a small record; NULL when they are not plain. */
static inline const uint8_t *take_three(const uint8_t *p, uint64_t *a, uint64_t *b, uint64_t *c)
{
	p = take_uv(p + 1, a);
	if (p)
		p = take_uv(p, b);
	return p ? take_uv(p, c) : NULL;
}

static bool take_node(struct decoder *d)
{
	uint64_t id, prefix, frame;
	const uint8_t *p = take_three(d->p, &id, &prefix, &frame);

	if (!p || !node_fits(d->source, d->source->nodes.len, id, prefix, frame) ||
	    !source_add_node(d->source, prefix, frame))
		return false;
	d->p = p;
	return true;
}

/* A pinned frame; others are rare. */
static bool take_frame(struct decoder *d)
{
	struct spulse_source *source = d->source;
	struct spulse_frame frame;
	uint64_t id, kind, value;
	const uint8_t *p = take_three(d->p, &id, &kind, &value);

	if (!p || id != source->frames.len || id >= UINT32_MAX || kind & 1 ||
	    kind >> 1 >= source->modules.len ||
	    !source_pin(source->modules.data[kind >> 1], value, &frame) ||
	    !source_add_frame(source, &frame))
		return false;
	d->p = p;
	return true;
}

bool decode_plain(struct decoder *d)
{
	const uint8_t *begin = d->p;
	int tag = 0, previous;

	while (d->end - d->p >= SMALL_RECORD_MAX) {
		previous = tag;
		tag = *d->p;
		if (tag == TAG_FRAME ? !take_frame(d)
		    : tag != TAG_STACK_NODE ||
			      /* Often there is one only: the next frame follows. */
			      ((previous != tag || !take_node_block(d)) && !take_node(d)))
			break;
	}
	return d->p != begin;
}
