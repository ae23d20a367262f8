/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * What the recorder's tail gets beside the spool: the images that are open here, so that their
 * names can be read whatever becomes of the files.
 */
#include "recorder.h"

#include <stdlib.h>

struct shared_images {
	struct spool_attachment attachment;
	unsigned int refs; /* atomic */
};

static void shared_ref(struct spool_attachment *attachment)
{
	struct shared_images *shared = (struct shared_images *)attachment;

	__atomic_add_fetch(&shared->refs, 1, __ATOMIC_RELAXED);
}

static void shared_unref(struct spool_attachment *attachment)
{
	struct shared_images *shared = (struct shared_images *)attachment;

	if (__atomic_sub_fetch(&shared->refs, 1, __ATOMIC_ACQ_REL))
		return;
	image_handover_unref(attachment->data);
	free(shared);
}

static void share_modules(struct spulse_recorder *rec)
{
	for (size_t i = 0; i < rec->processes.len; i++) {
		const struct rec_modules *modules = &rec->processes.data[i]->modules;

		for (size_t k = 0; k < modules->places.len; k++)
			image_handover_add(rec->handover, modules->list[k].id,
					   modules->list[k].file);
	}
}

struct spool_attachment *share_images(struct spulse_recorder *rec)
{
	struct shared_images *shared = calloc(1, sizeof(*shared));

	if (!rec->handover)
		rec->handover = image_handover_new();
	if (!shared || !rec->handover) {
		free(shared);
		return NULL;
	}
	*shared = (struct shared_images){
		.attachment = { .ref = shared_ref, .unref = shared_unref, .kind = "images",
				.data = image_handover_ref(rec->handover) },
		.refs = 1,
	};
	share_modules(rec);
	return &shared->attachment;
}
