/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Code of the target that no file holds: trampolines and what compilers make at run time. Asked
 * for once for each address that is new to the unwinder.
 */
#include "recorder.h"

#include <sys/uio.h>

bool code_read(void *data, struct unw_space *space, uint64_t address, void *buf, size_t len)
{
	struct spulse_recorder *rec = data;
	const struct rec_process *process = rec->walking;
	struct iovec local = {.iov_base = buf, .iov_len = len};
	/* An address in the target, never followed here. */
	struct iovec remote = {.iov_base = (void *)(uintptr_t)address, .iov_len = len};

	(void)space;
	if (rec->offline || !process || process->exited || !process->handle)
		return false;
	return process_vm_readv(process->pid, &local, 1, &remote, 1, 0) == (ssize_t)len;
}
