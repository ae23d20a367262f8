/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_CODEMAP_PERFLINE_H
#define SPULSE_CODEMAP_PERFLINE_H

#include "codemap.h"

/* Reads "START LEN NAME" without its line end; false when it is no entry. */
bool perfline_parse(const char *line, size_t len, uint64_t *start, uint64_t *end,
		    struct perfmap_text *name);
/* Splits a Python name "py::FUNCTION:FILE"; false for another name. */
bool perfline_python(const struct perfmap_text *name, struct perfmap_text *function,
		     struct perfmap_text *file);

#endif
