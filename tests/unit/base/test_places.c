/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Arrays with room at both ends, against a plain one that moves all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/places.h"
#include "random.h"

enum { LIMIT = 400 };

struct numbers {
	int *first;
	struct places places;
	unsigned int moves; /* to other memory */
};

static void spread(struct numbers *n)
{
	size_t len = n->places.len, spare = places_spare(len);
	int *memory = malloc((len + 2 * spare) * sizeof(*memory));

	assert_non_null(memory);
	if (n->first) {
		memcpy(memory + spare, n->first, len * sizeof(*memory));
		free(n->first - n->places.before);
	}
	n->first = memory + spare;
	n->places = (struct places){.before = spare, .len = len, .behind = spare};
	n->moves++;
}

static void splice(struct numbers *n, size_t first, size_t end, const int *with, size_t count)
{
	while (!places_fit(&n->places, first, end, count))
		spread(n);
	n->first = places_splice(&n->places, n->first, sizeof(*with), first, end, count);
	memcpy(n->first + first, with, count * sizeof(*with));
}

static void release(struct numbers *n)
{
	free(n->first - n->places.before);
}

static void test_like_a_plain_array(void **state)
{
	int plain[LIMIT + 2], value = 0;
	struct random rng = {.state = 1};
	struct numbers n = {0};
	size_t len = 0;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		size_t first = random_below(&rng, len + 1);
		size_t gone = random_below(&rng, len - first + 1), count = random_below(&rng, 3);
		const int with[2] = {value, value + 1};

		value += 2;
		if (gone > 4 && round % 50)
			gone = random_below(&rng, 4);
		if (len - gone + count > LIMIT || (!n.first && !count))
			continue;
		splice(&n, first, first + gone, with, count);
		memmove(plain + first + count, plain + first + gone,
			(len - first - gone) * sizeof(*plain));
		memcpy(plain + first, with, count * sizeof(*plain));
		len = len - gone + count;
		assert_int_equal(n.places.len, len);
		assert_memory_equal(n.first, plain, len * sizeof(*plain));
	}
	release(&n);
}

/* Mappings come from high addresses downwards: what is above them must stay where it is. */
static void grow_at(bool front)
{
	struct numbers n = {0};
	const int value = 7;

	for (unsigned int i = 0; i < 50000; i++) {
		int *last = n.places.len ? n.first + n.places.len - 1 : NULL, *old = n.first;
		unsigned int moves = n.moves;
		size_t at = front ? 0 : n.places.len;

		splice(&n, at, at, &value, 1);
		if (last && n.moves == moves)
			assert_ptr_equal(front ? n.first + n.places.len - 1 : n.first,
					 front ? last : old);
	}
	assert_in_range(n.moves, 1, 120);
	release(&n);
}

static void test_growth_moves_little(void **state)
{
	(void)state;
	grow_at(true);
	grow_at(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_like_a_plain_array),
		cmocka_unit_test(test_growth_moves_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
