/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_BASE_VEC_H
#define SPULSE_BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* A growing array: `VEC(struct item) items = {0};`. Growth may move it. */
#define VEC(type) \
	struct { \
		type *data; \
		size_t len; \
		size_t cap; \
	}

/* Makes room for `more` further elements of `size` bytes; false when memory ran out. */
bool vec_grow(void **data, size_t *cap, size_t len, size_t more, size_t size);

#define vec_reserve(v, more) \
	((v)->cap - (v)->len >= (size_t)(more) || \
	 vec_grow((void **)&(v)->data, &(v)->cap, (v)->len, (more), sizeof(*(v)->data)))

/* Appends; false when memory ran out. */
#define vec_push(v, ...) \
	(vec_reserve((v), 1) ? ((v)->data[(v)->len++] = (__VA_ARGS__), true) : false)

#define vec_pop(v) ((v)->data[--(v)->len])
#define vec_last(v) ((v)->data[(v)->len - 1])

#define vec_free(v) (free((v)->data), (v)->data = NULL, (v)->len = (v)->cap = 0)

#endif
