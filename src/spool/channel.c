/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "channel.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <time.h>

enum { NS_PER_SECOND = 1000000000 };

struct spool_channel {
	atomic_uint refs;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int fd; /* readable while a tail has something to do */
	uint64_t published;
	bool ended, has_summary;
	struct spulse_error *error;
	struct spulse_recording_summary summary;
};

static void init_waiting(struct spool_channel *channel)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&channel->changed, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_init(&channel->lock, NULL);
}

int spool_channel_new(struct spool_channel **out, struct spulse_error **err)
{
	struct spool_channel *channel = calloc(1, sizeof(*channel));

	if (!channel)
		return err_no_memory(err);
	/* Readable from the start: the first poll has something to deliver. */
	channel->fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	if (channel->fd < 0) {
		int r = err_io(err, errno, NULL, "cannot create an eventfd for the tail");

		free(channel);
		return r;
	}
	atomic_init(&channel->refs, 1);
	init_waiting(channel);
	*out = channel;
	return 0;
}

struct spool_channel *spool_channel_ref(struct spool_channel *channel)
{
	atomic_fetch_add(&channel->refs, 1);
	return channel;
}

void spool_channel_unref(struct spool_channel *channel)
{
	if (!channel || atomic_fetch_sub(&channel->refs, 1) > 1)
		return;
	pthread_cond_destroy(&channel->changed);
	pthread_mutex_destroy(&channel->lock);
	cleanup_close(&channel->fd);
	spulse_error_free(channel->error);
	free(channel);
}

/* The lock is held. A full counter is as readable as can be. */
static void wake(struct spool_channel *channel)
{
	eventfd_write(channel->fd, 1);
	pthread_cond_broadcast(&channel->changed);
}

void spool_channel_publish(struct spool_channel *channel, uint64_t bytes)
{
	pthread_mutex_lock(&channel->lock);
	if (bytes > channel->published && !channel->ended) {
		channel->published = bytes;
		wake(channel);
	}
	pthread_mutex_unlock(&channel->lock);
}

static void keep_summary(struct spool_channel *channel,
			 const struct spulse_recording_summary *summary)
{
	memcpy(&channel->summary, summary, MIN(summary->size, sizeof(*summary)));
	channel->summary.size = sizeof(*summary);
	channel->has_summary = true;
}

void spool_channel_end(struct spool_channel *channel, struct spulse_error *error,
		       const struct spulse_recording_summary *summary)
{
	pthread_mutex_lock(&channel->lock);
	if (!channel->ended) {
		channel->ended = true;
		channel->error = err_ref(error);
		if (!error && summary)
			keep_summary(channel, summary);
		wake(channel);
	}
	pthread_mutex_unlock(&channel->lock);
}

static struct channel_view view(const struct spool_channel *channel)
{
	return (struct channel_view){ channel->published, channel->ended, channel->error };
}

struct channel_view channel_look(struct spool_channel *channel)
{
	struct channel_view now;

	pthread_mutex_lock(&channel->lock);
	now = view(channel);
	pthread_mutex_unlock(&channel->lock);
	return now;
}

static struct timespec deadline(int64_t timeout_ns)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_sec += timeout_ns / NS_PER_SECOND;
	at.tv_nsec += timeout_ns % NS_PER_SECOND;
	if (at.tv_nsec >= NS_PER_SECOND) {
		at.tv_nsec -= NS_PER_SECOND;
		at.tv_sec++;
	}
	return at;
}

struct channel_view channel_wait(struct spool_channel *channel, uint64_t seen, int64_t timeout_ns)
{
	struct timespec until = { 0 };
	struct channel_view now;
	int r = 0;

	if (timeout_ns > 0)
		until = deadline(timeout_ns);
	pthread_mutex_lock(&channel->lock);
	while (channel->published <= seen && !channel->ended && timeout_ns && r == 0)
		r = timeout_ns < 0 ? pthread_cond_wait(&channel->changed, &channel->lock)
				   : pthread_cond_timedwait(&channel->changed, &channel->lock,
							    &until);
	now = view(channel);
	pthread_mutex_unlock(&channel->lock);
	return now;
}

void channel_quiet(struct spool_channel *channel, uint64_t seen)
{
	eventfd_t ignored;

	pthread_mutex_lock(&channel->lock);
	if (channel->published <= seen && !channel->ended)
		eventfd_read(channel->fd, &ignored);
	pthread_mutex_unlock(&channel->lock);
}

int channel_fd(const struct spool_channel *channel)
{
	return channel->fd;
}

int channel_summary(struct spool_channel *channel, struct spulse_recording_summary *summary_out)
{
	int found;

	pthread_mutex_lock(&channel->lock);
	found = channel->has_summary;
	if (found) {
		size_t size = MIN(summary_out->size, sizeof(channel->summary));

		memcpy(summary_out, &channel->summary, size);
		summary_out->size = size;
	}
	pthread_mutex_unlock(&channel->lock);
	return found;
}
