/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef STACKPULSE_VERSION_H
#define STACKPULSE_VERSION_H

#include <stackpulse/common.h>

/** Version that these headers belong to. */
#define SPULSE_VERSION_MAJOR 0
#define SPULSE_VERSION_MINOR 1
#define SPULSE_VERSION_PATCH 0

/** Optional parts that a build may have; see spulse_features(). */
enum spulse_feature {
	/** ELF and DWARF names without a plug-in. */
	SPULSE_FEATURE_NATIVE_BACKEND = 1 << 0,
	/** Symbols by build ID from debuginfod servers. */
	SPULSE_FEATURE_DEBUGINFOD = 1 << 1,
	/** Mini debug information (.gnu_debugdata). */
	SPULSE_FEATURE_LZMA = 1 << 2,
	/** Sections compressed with zstd. */
	SPULSE_FEATURE_ZSTD = 1 << 3,
	/** Decoding of machine code that has no unwind tables. */
	SPULSE_FEATURE_DISASSEMBLER = 1 << 4,
};

SPULSE_BEGIN_DECLS

/** Version of the library in use, for example "0.1.0". Static storage. */
SPULSE_API const char *spulse_version(void);

/** Set of enum spulse_feature bits that this build has. */
SPULSE_API unsigned int spulse_features(void);

SPULSE_END_DECLS

#endif
