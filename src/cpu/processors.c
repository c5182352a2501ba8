/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linux counts a process into control groups, which form a tree. Each of them may have a quota of processor time:
 *
 *     version 2   GROUP/cpu.max                                      "QUOTA PERIOD" or "max PERIOD"
 *     version 1   GROUP/cpu.cfs_quota_us, GROUP/cpu.cfs_period_us    QUOTA is -1 if there is none
 *
 * /proc/self/cgroup has the process's group of each tree. A container may see its own group as the top of the tree, so
 * groups that are not there are passed over.
 */
#include "cpu/processors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#if defined(__linux__)
#include <sched.h>
#endif

enum {
    MAX_PROCESSORS = 1 << 16
};

static int allowed_by_affinity(void) {
#if defined(__linux__)
    for (int processors = 1024; processors <= MAX_PROCESSORS; processors *= 2) {
        cpu_set_t *const set = CPU_ALLOC(processors);
        const size_t bytes = CPU_ALLOC_SIZE(processors);
        const bool read = set && sched_getaffinity(0, bytes, set) == 0;
        const int count = read ? CPU_COUNT_S(bytes, set) : 0;
        CPU_FREE(set);
        if (count > 0)
            return count;
    }
#endif
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 && online <= MAX_PROCESSORS ? (int)online : 1;
}

/* Read the first numbers of a file. Returns how many there are. */
static int read_numbers(const char *folder, const char *name, double numbers[2]) {
    char path[4096], text[64] = "";
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path)
        return 0;
    FILE *const file = fopen(path, "re");
    if (!file)
        return 0;
    const bool read = fgets(text, sizeof text, file) != NULL;
    fclose(file);
    return read ? sscanf(text, "%lf %lf", &numbers[0], &numbers[1]) : 0;
}

static void limit(double *quota, double time, double period) {
    if (time > 0 && period > 0 && isfinite(time / period) && (*quota == 0 || time / period < *quota))
        *quota = time / period;
}

/* The quota of one group. */
static void read_group(const char *folder, double *quota) {
    double numbers[2], period[2];
    if (read_numbers(folder, "cpu.max", numbers) == 2)
        limit(quota, numbers[0], numbers[1]);
    if (read_numbers(folder, "cpu.cfs_quota_us", numbers) > 0 && read_numbers(folder, "cpu.cfs_period_us", period) > 0)
        limit(quota, numbers[0], period[0]);
}

/* The same for a group and all groups above it, in the tree at `folder`. */
static void read_groups(const char *root, const char *tree, const char *group, double *quota) {
    char folder[4096];
    const int top = snprintf(folder, sizeof folder, "%s/sys/fs/cgroup%s", root, tree);
    if ((size_t)top + strlen(group) >= sizeof folder)
        return;
    strcpy(folder + top, group);
    for (char *end = folder + strlen(folder); end; end = strrchr(folder + top, '/')) {
        *end = '\0';
        read_group(folder, quota);
    }
}

static bool has_cpu(const char *controllers) {
    for (const char *at = controllers; (at = strstr(at, "cpu")) != NULL; ++at)
        if ((at == controllers || at[-1] == ',') && (at[3] == '\0' || at[3] == ','))
            return true;
    return false;
}

/* A line is "NUMBER:CONTROLLERS:/GROUP". Version 2 has no controllers. Its tree may be beside those of version 1. */
static double find_quota(const char *root) {
    char path[4096], line[4096], tree[256];
    double quota = 0;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *const file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        char *const controllers = strchr(line, ':'), *const group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group = '\0';
        if (controllers[1] == '\0') {
            read_groups(root, "", group + 1, &quota);
            read_groups(root, "/unified", group + 1, &quota);
        } else if (has_cpu(controllers + 1)) {
            snprintf(tree, sizeof tree, "/%s", controllers + 1);
            read_groups(root, tree, group + 1, &quota);
            read_groups(root, "/cpu", group + 1, &quota);
        }
    }
    if (file)
        fclose(file);
    return quota;
}

cf_processors cf_processors_find(const char *root) {
    cf_processors p = {.count = allowed_by_affinity(), .quota = find_quota(root)};
    p.by_quota = p.quota > 0 && ceil(p.quota) < p.count;
    if (p.by_quota)
        p.count = (int)ceil(p.quota);
    return p;
}
