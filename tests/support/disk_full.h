/* SPDX-License-Identifier: Apache-2.0 */
/* A disk that is full. A program that declares __wrap_write (CMakeLists.txt looks for that) writes to this one. */
#ifndef TEST_DISK_H
#define TEST_DISK_H

/** Room in bytes; negative, as at first: a real disk. */
extern long disk_room;

#endif
