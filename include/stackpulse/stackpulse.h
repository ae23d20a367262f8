/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#ifndef STACKPULSE_STACKPULSE_H
#define STACKPULSE_STACKPULSE_H

/**
 * @file
 * The whole public API of libstackpulse.
 */

#include <stackpulse/common.h>
#include <stackpulse/version.h>
#include <stackpulse/doctor.h>
#include <stackpulse/error.h>
#include <stackpulse/log.h>
#include <stackpulse/process.h>
#include <stackpulse/spool.h>
#include <stackpulse/spool_writer.h>
#include <stackpulse/record.h>
#include <stackpulse/profile.h>
#include <stackpulse/native.h>
#include <stackpulse/symbolize.h>

#endif
