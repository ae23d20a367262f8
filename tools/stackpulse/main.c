/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include <stackpulse/stackpulse.h>

int main(void)
{
	puts(spulse_version());
	return 0;
}
