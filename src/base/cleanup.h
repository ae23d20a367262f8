/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef SPULSE_BASE_CLEANUP_H
#define SPULSE_BASE_CLEANUP_H

#include <stdlib.h>
#include <unistd.h>

/* Scope cleanup: `_cleanup_free_ char *s = NULL;` `_cleanup_close_ int fd = -1;` */

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

#define _cleanup_(fn) __attribute__((cleanup(fn)))
#define _cleanup_free_ _cleanup_(cleanup_free)
#define _cleanup_close_ _cleanup_(cleanup_close)

/* Hands a pointer on and forgets it here, so that its cleanup does nothing. */
#define take_ptr(p) \
	({ \
		__typeof__(p) taken_ = (p); \
		(p) = NULL; \
		taken_; \
	})

static inline int take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

#endif
