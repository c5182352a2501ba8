/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CF_DEVICE_REPORT_H
#define CF_DEVICE_REPORT_H

#include "core/text.h"
#include "cuda/driver/dynlib.h"

/* A report for people: every CUDA library with its file and version, or why it is missing and how to get it; every
 * GPU with its properties, in the format of cf_gpu_properties_load(); the cache directory and its state. It creates
 * nothing on a GPU or on disk. */
void cf_device_report(const cf_search *search, const char *cache_directory, cf_text *text);

#endif
