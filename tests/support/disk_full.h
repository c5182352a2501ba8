/* SPDX-License-Identifier: Apache-2.0 */
/* A full disk. A program that declares __wrap_write (CMakeLists.txt finds that) writes to it. */
#ifndef TEST_DISK_H
#define TEST_DISK_H

/** Free bytes; negative, the default: the real disk. */
extern long disk_room;

#endif
