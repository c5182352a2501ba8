/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CF_DEVICE_REPORT_H
#define CF_DEVICE_REPORT_H

#include "core/text.h"
#include "cuda/driver/dynlib.h"

/* For people: every CUDA library with file and version, or why it is missing and how to get it; every GPU with its facts,
 * as a file for cf_gpu_properties_load() has them; the cache directory and its state. Makes nothing, on no GPU and on no disk. */
void cf_device_report(const cf_search *search, const char *cache_directory, cf_text *text);

#endif
