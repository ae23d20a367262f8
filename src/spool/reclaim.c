/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "reclaim.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

void reclaimer_init(struct reclaimer *reclaimer, bool enabled)
{
	reclaimer->state = enabled ? SPULSE_RECLAMATION_ENABLED : SPULSE_RECLAMATION_RETAINED;
}

int reclaimer_punch(struct reclaimer *reclaimer, int fd, const char *path, uint64_t end,
		    struct spulse_error **err)
{
	int r;

	end -= end % (uint64_t)sysconf(_SC_PAGESIZE);
	if (end <= reclaimer->mark)
		return 0;
	do
		r = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, reclaimer->mark,
			      end - reclaimer->mark);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return err_io(err, errno, path, "cannot free the space of the first %llu bytes",
			      (unsigned long long)end);
	reclaimer->reclaimed += end - reclaimer->mark;
	reclaimer->mark = end;
	return 0;
}

int reclaimer_advance(struct reclaimer *reclaimer, int fd, const char *path, uint64_t end,
		      struct spulse_error **err)
{
	struct spulse_error *error = NULL;
	int r = reclaimer_punch(reclaimer, fd, path, end, &error);

	if (r == -SPULSE_ERROR_UNSUPPORTED) {
		reclaimer->state = SPULSE_RECLAMATION_UNSUPPORTED;
		spulse_error_free(error);
		return 0;
	}
	if (r < 0) {
		if (err)
			*err = error;
		else
			spulse_error_free(error);
	}
	return r;
}
