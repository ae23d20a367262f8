/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "source.h"

int spulse_module_new(const struct spulse_module_fields *given,
		      struct spulse_module **module_out, struct spulse_error **err)
{
	struct spulse_module_fields known, *fields = &known;
	struct spulse_module *module;
	char *path;
	int r = options_read(&known, sizeof(known), given, "fields of the module", err);

	if (r < 0)
		return r;
	if (fields->start >= fields->end)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT,
			       "a module's start must be below its end");
	if (!fields->is_kernel && fields->pid < 1)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "process id %d is not positive",
			       (int)fields->pid);
	module = malloc(sizeof(*module) + fields->path_len + 1);
	if (!module)
		return err_no_memory(err);
	path = (char *)(module + 1);
	if (fields->path_len)
		memcpy(path, fields->path, fields->path_len);
	path[fields->path_len] = '\0';
	*module = (struct spulse_module){
		.start = fields->start,
		.end = fields->end,
		.file_offset = fields->file_offset,
		.inode = fields->inode,
		.inode_generation = fields->inode_generation,
		.device_major = fields->device_major,
		.device_minor = fields->device_minor,
		.id = SPULSE_NO_MODULE,
		.pid = fields->is_kernel ? -1 : fields->pid,
		.retired_at = NEVER_RETIRED,
		.is_kernel = fields->is_kernel,
		.path = path,
		.path_len = fields->path_len,
	};
	*module_out = module;
	return 0;
}

void spulse_module_free(struct spulse_module *module)
{
	free(module);
}

uint32_t spulse_module_id(const struct spulse_module *module)
{
	return module->id;
}

pid_t spulse_module_pid(const struct spulse_module *module)
{
	return module->pid;
}

uint64_t spulse_module_start(const struct spulse_module *module)
{
	return module->start;
}

uint64_t spulse_module_end(const struct spulse_module *module)
{
	return module->end;
}

uint64_t spulse_module_file_offset(const struct spulse_module *module)
{
	return module->file_offset;
}

uint64_t spulse_module_inode(const struct spulse_module *module)
{
	return module->inode;
}

uint32_t spulse_module_device_major(const struct spulse_module *module)
{
	return module->device_major;
}

uint32_t spulse_module_device_minor(const struct spulse_module *module)
{
	return module->device_minor;
}

uint64_t spulse_module_inode_generation(const struct spulse_module *module)
{
	return module->inode_generation;
}

const char *spulse_module_path(const struct spulse_module *module)
{
	return module->path;
}

size_t spulse_module_path_len(const struct spulse_module *module)
{
	return module->path_len;
}

bool spulse_module_is_kernel(const struct spulse_module *module)
{
	return module->is_kernel;
}

struct spulse_frame spulse_frame_truncated_marker(void)
{
	return (struct spulse_frame){
		.module_id = SPULSE_NO_MODULE,
		.mode = SPULSE_FRAME_TRUNCATED,
	};
}

bool spulse_frame_is_truncated_marker(const struct spulse_frame *frame)
{
	return frame->mode == SPULSE_FRAME_TRUNCATED;
}
