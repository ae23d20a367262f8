/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "elfimage.h"

#include <stdlib.h>

/* Images by identity, the most recently used last. Few hundred at most: a scan is cheap. */
struct image_cache {
	atomic_uint refs;
	pthread_mutex_t lock;
	size_t max_images, max_bytes;
	VEC(struct image *) images;
	struct image *vdso;
};

int image_cache_new(size_t max_images, size_t max_bytes, struct image_cache **cache_out,
		    struct spulse_error **err)
{
	struct image_cache *cache = calloc(1, sizeof(*cache));

	if (!cache)
		return err_no_memory(err);
	cache->refs = 1;
	cache->max_images = max_images;
	cache->max_bytes = max_bytes;
	pthread_mutex_init(&cache->lock, NULL);
	*cache_out = cache;
	return 0;
}

struct image_cache *image_cache_ref(struct image_cache *cache)
{
	if (cache)
		atomic_fetch_add_explicit(&cache->refs, 1, memory_order_relaxed);
	return cache;
}

void image_cache_unref(struct image_cache *cache)
{
	if (!cache || atomic_fetch_sub_explicit(&cache->refs, 1, memory_order_acq_rel) != 1)
		return;
	for (size_t i = 0; i < cache->images.len; i++)
		image_unref(cache->images.data[i]);
	vec_free(&cache->images);
	image_unref(cache->vdso);
	pthread_mutex_destroy(&cache->lock);
	free(cache);
}

static bool same_identity(const struct image_identity *a, const struct image_identity *b)
{
	return a->inode == b->inode && a->dev_major == b->dev_major &&
	       a->dev_minor == b->dev_minor && a->generation == b->generation &&
	       a->size == b->size && a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}

static struct image *take_at(struct image_cache *cache, size_t i)
{
	struct image *image = cache->images.data[i];

	cache->images.len--;
	memmove(&cache->images.data[i], &cache->images.data[i + 1],
		(cache->images.len - i) * sizeof(image));
	return image;
}

/* Finds and makes it the most recently used; a borrowed pointer. */
static struct image *touch(struct image_cache *cache, const struct image_identity *identity)
{
	for (size_t i = cache->images.len; i-- > 0;) {
		struct image *image = cache->images.data[i];

		if (!same_identity(&image->identity, identity))
			continue;
		take_at(cache, i);
		cache->images.data[cache->images.len++] = image;
		return image;
	}
	return NULL;
}

/* Images grow as sections are read, so sizes are taken anew each time. */
static void shrink(struct image_cache *cache)
{
	size_t bytes = 0;

	for (size_t i = cache->images.len; i-- > 0;) {
		size_t owned = image_owned_bytes(cache->images.data[i]);

		if (owned > cache->max_bytes)
			image_unref(take_at(cache, i));
		else
			bytes += owned;
	}
	while (cache->images.len &&
	       (bytes > cache->max_bytes || cache->images.len > cache->max_images)) {
		struct image *oldest = take_at(cache, 0);
		size_t owned = image_owned_bytes(oldest);

		bytes -= MIN(bytes, owned);
		image_unref(oldest);
	}
}

struct image *image_cache_find(struct image_cache *cache, const struct image_identity *identity)
{
	struct image *image;

	pthread_mutex_lock(&cache->lock);
	image = image_ref(touch(cache, identity));
	shrink(cache);
	pthread_mutex_unlock(&cache->lock);
	return image;
}

struct image *image_cache_add(struct image_cache *cache, struct image *image)
{
	struct image *other;

	pthread_mutex_lock(&cache->lock);
	other = image_ref(touch(cache, &image->identity));
	if (!other && image_owned_bytes(image) <= cache->max_bytes &&
	    vec_push(&cache->images, image)) {
		image_ref(image);
		shrink(cache);
	}
	pthread_mutex_unlock(&cache->lock);
	if (!other)
		return image;
	image_unref(image);
	return other;
}

struct image *image_cache_vdso(struct image_cache *cache, struct spulse_error **err)
{
	struct image *image = NULL;

	pthread_mutex_lock(&cache->lock);
	if (cache->vdso || image_vdso_new(&cache->vdso, err) == 0)
		image = image_ref(cache->vdso);
	pthread_mutex_unlock(&cache->lock);
	return image;
}
