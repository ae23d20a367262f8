/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Sorts for ever, and sorts in a signal handler that comes every fifth of a millisecond. */
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

static volatile int sink;

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void on_alarm(int number)
{
	int values[50];

	for (int i = 0; i < 50; i++)
		values[i] = (i * 7919 + number) % 101;
	qsort(values, 50, sizeof(values[0]), compare);
	sink += values[3];
}

int main(void)
{
	const struct itimerval often = {.it_interval.tv_usec = 200, .it_value.tv_usec = 200};
	const struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	int values[2000];

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (;;) {
		for (int i = 0; i < 2000; i++)
			values[i] = rand();
		qsort(values, 2000, sizeof(values[0]), compare);
	}
}
