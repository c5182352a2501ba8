/* SPDX-License-Identifier: Apache-2.0 */
/* How many threads a CPU context has by default: affinity masks, and quotas of groups in folders of the test. */
#include "cpu/processors.h"

#include "cpu/backend.h"
#include "support/temp_dirs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__linux__)
#include <sched.h>
#endif

#include <cmocka.h>

static void put(const char *root, const char *name, const char *text) {
    char path[4096];
    snprintf(path, sizeof path, "%s%s", root, name);
    for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')) != NULL; ++at) {
        *at = '\0';
        mkdir(path, 0700);
        *at = '/';
    }
    FILE *const file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static double quota_of(const char *root) { return cf_processors_find(root).quota; }

/* Processors without any quota: those of the affinity mask. */
static int all_processors(void) { return cf_processors_find("/nonexistent").count; }

static void no_quota(void **state) {
    const char *const root = *state;
    assert_true(all_processors() >= 1);
    assert_true(quota_of(root) == 0); /* there is nothing to read */
    put(root, "/proc/self/cgroup", "0::/a/b\n");
    put(root, "/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    const cf_processors p = cf_processors_find(root);
    assert_true(p.quota == 0 && !p.by_quota);
    assert_int_equal(p.count, all_processors());
}

static void version_2(void **state) {
    const char *const root = *state;
    put(root, "/proc/self/cgroup", "0::/a/b\n");
    put(root, "/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    put(root, "/sys/fs/cgroup/a/cpu.max", "150000 100000\n");
    assert_true(quota_of(root) == 1.5);
    put(root, "/sys/fs/cgroup/cpu.max", "20000 100000\n"); /* the lowest quota on the way to the top counts */
    const cf_processors p = cf_processors_find(root);
    assert_true(p.quota == 0.2);
    assert_int_equal(p.count, 1);
    assert_int_equal(p.by_quota, all_processors() > 1);
    put(root, "/sys/fs/cgroup/a/c/cpu.max", "1000 100000\n"); /* of other processes */
    assert_true(quota_of(root) == 0.2);
}

/* A container's own group is the top of the tree that it sees. */
static void container(void **state) {
    const char *const root = *state;
    put(root, "/proc/self/cgroup", "0::/docker/0123456789abcdef\n");
    put(root, "/sys/fs/cgroup/cpu.max", "250000 100000\n");
    assert_true(quota_of(root) == 2.5);
}

static void version_1(void **state) {
    const char *const root = *state;
    put(root, "/proc/self/cgroup", "12:cpuset:/s\n11:cpuacct,cpu:/s/job\n3:memory:/m\n0::/\n");
    put(root, "/sys/fs/cgroup/cpuset/s/cpu.cfs_quota_us", "1000\n"); /* not of this tree */
    put(root, "/sys/fs/cgroup/cpuset/s/cpu.cfs_period_us", "100000\n");
    put(root, "/sys/fs/cgroup/cpuacct,cpu/s/job/cpu.cfs_quota_us", "-1\n");
    put(root, "/sys/fs/cgroup/cpuacct,cpu/s/job/cpu.cfs_period_us", "100000\n");
    assert_true(quota_of(root) == 0);
    put(root, "/sys/fs/cgroup/cpuacct,cpu/s/cpu.cfs_quota_us", "50000\n");
    assert_true(quota_of(root) == 0); /* without a period */
    put(root, "/sys/fs/cgroup/cpuacct,cpu/s/cpu.cfs_period_us", "100000\n");
    assert_true(quota_of(root) == 0.5);
    put(root, "/sys/fs/cgroup/cpu/s/cpu.cfs_quota_us", "40000\n");
    put(root, "/sys/fs/cgroup/cpu/s/cpu.cfs_period_us", "100000\n");
    assert_true(quota_of(root) == 0.4);
    put(root, "/sys/fs/cgroup/unified/cpu.max", "30000 100000\n"); /* version 2 beside version 1 */
    assert_true(quota_of(root) == 0.3);
}

static void nonsense(void **state) {
    static const char *const texts[] = {"",           "\n",       "x y\n",     "100000\n", "-5 100000\n",
                                        "0 100000\n", "1000 0\n", "1e400 1\n", "nan 1\n",  "1000 -1\n"};
    const char *const root = *state;
    put(root, "/proc/self/cgroup", "no colon\n5:\n:cpu\n0::/a\n");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
        put(root, "/sys/fs/cgroup/a/cpu.max", texts[i]);
        assert_true(quota_of(root) == 0);
    }
    char line[3000];
    memset(line, 'g', sizeof line);
    memcpy(line, "0::/", 4);
    line[sizeof line - 1] = '\0';
    put(root, "/proc/self/cgroup", line);
    put(root, "/sys/fs/cgroup/cpu.max", "1000 1000\n");
    assert_true(quota_of(root) == 1);
}

/* A context takes what it may use; more threads are used if its caller asks for them, and it says so. */
static void contexts_say_it(void **state) {
    cf_device *device = NULL;
    char expected[64];
    (void)state;
    assert_int_equal(cf_cpu_create(4096, CONV_FFT_LOG_SILENT, &device), CONV_FFT_SUCCESS);
    assert_int_equal(device->threads, 4096);
    snprintf(expected, sizeof expected, ", 4096 threads on %d processor", cf_processors_find("").count);
    assert_non_null(strstr(cf_cpu_description(device), expected));
    cf_cpu_destroy(device);
#if defined(__linux__)
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    int first = 0;
    while (!CPU_ISSET(first, &before))
        ++first;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(all_processors(), 1);
    assert_int_equal(cf_cpu_create(0, CONV_FFT_LOG_SILENT, &device), CONV_FFT_SUCCESS);
    assert_int_equal(device->threads, 1); /* OMP_NUM_THREADS is 2 in tests */
    assert_non_null(strstr(cf_cpu_description(device), ", 1 thread, "));
    cf_cpu_destroy(device);
    assert_int_equal(cf_cpu_create(2, CONV_FFT_LOG_SILENT, &device), CONV_FFT_SUCCESS);
    assert_non_null(strstr(cf_cpu_description(device), ", 2 threads on 1 processor, "));
    cf_cpu_destroy(device);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
#endif
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_create, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(no_quota),  IN_SCRATCH(version_2), IN_SCRATCH(container),
        IN_SCRATCH(version_1), IN_SCRATCH(nonsense),  cmocka_unit_test(contexts_say_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
