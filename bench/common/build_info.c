/* SPDX-License-Identifier: Apache-2.0 */
#include "common/build_info.h"

#include "common/message.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* The first line of a stream, or the value of a key in a stream of "key : value" lines. `otherwise`: there is
 * none. */
static void first_line(FILE *stream, const char *key, const char *otherwise, char *text, size_t bytes) {
    char line[512];
    bench_copy(text, bytes, otherwise);
    while (stream && fgets(line, sizeof line, stream)) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, key, strlen(key)))
            continue;
        const char *colon = strchr(line, ':');
        const char *value = key[0] && colon ? colon + 1 + strspn(colon + 1, " ") : line;
        if (value[0])
            bench_copy(text, bytes, value);
        return;
    }
}

void bench_first_line(const char *path, const char *key, const char *otherwise, char *text, size_t bytes) {
    FILE *file = fopen(path, "r");
    first_line(file, key, otherwise, text, bytes);
    if (file)
        fclose(file);
}

void bench_commit(const char *given, char *text, size_t bytes) {
    FILE *git = given ? NULL : popen("git describe --always --dirty 2>/dev/null", "r");
    first_line(git, "", given ? given : "unknown", text, bytes);
    if (git)
        pclose(git);
}

void bench_date(char *text, size_t bytes) {
    const time_t now = time(NULL);
    strftime(text, bytes, "%Y-%m-%d", gmtime(&now));
}

void bench_driver(char *text, size_t bytes) {
    bench_first_line("/sys/module/nvidia/version", "", "unknown", text, bytes);
}
