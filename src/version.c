/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <stackpulse/version.h>

#include "config.h"

const char *spulse_version(void)
{
	return SPULSE_VERSION_TEXT;
}

unsigned int spulse_features(void)
{
	return (SPULSE_HAVE_NATIVE ? SPULSE_FEATURE_NATIVE_BACKEND : 0) |
	       (SPULSE_HAVE_DEBUGINFOD ? SPULSE_FEATURE_DEBUGINFOD : 0) |
	       (SPULSE_HAVE_LZMA ? SPULSE_FEATURE_LZMA : 0) |
	       (SPULSE_HAVE_ZSTD ? SPULSE_FEATURE_ZSTD : 0) |
	       (SPULSE_HAVE_CAPSTONE ? SPULSE_FEATURE_DISASSEMBLER : 0);
}
