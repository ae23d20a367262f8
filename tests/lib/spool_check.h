/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef TESTS_LIB_SPOOL_CHECK_H
#define TESTS_LIB_SPOOL_CHECK_H

#include "spool_model.h"

/*
 * A written spool, whose header has `header` bytes, gives the model back: through Snapshot,
 * Replay, and a Tail that sees the file grow by random steps. A difference fails the test.
 */
void spool_check_readers(struct spool_model *model, const void *bytes, size_t len, size_t header);

#endif
