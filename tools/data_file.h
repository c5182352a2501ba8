/* SPDX-License-Identifier: Apache-2.0 */
/* The files that are installed with the program: networks/ and tuning/. */
#ifndef DATA_FILE_H
#define DATA_FILE_H

#include <stdio.h>

/** Opens a file for reading. If a relative name does not exist, that of an installed file is tried: networks/vgg16.txt
 * in any folder is PREFIX/share/conv_fft/networks/vgg16.txt. NULL with errno of the name as given. */
FILE *data_file_open(const char *name);

#endif
