/* SPDX-License-Identifier: Apache-2.0 */
/* conv-fft devices: the device in use, and the library's report about the machine. */
#include "main.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Add "  key=value" of a GPU. Values are whole numbers, but for the name. */
static void add_property(json_t *gpu, const char *line) {
    char key[64];
    const char *const value = strchr(line, '=');
    if (!gpu || !value)
        return;
    snprintf(key, sizeof key, "%.*s", (int)(value - line), line);
    char *end;
    const long long number = strtoll(value + 1, &end, 10);
    json_object_set_new(gpu, key, *end || end == value + 1 ? json_string(value + 1) : json_integer(number));
}

/* Add "  NAME         VERSION    FILE", or "missing" and a reason in the places of version and file. */
static void add_library(json_t *document, const char *line) {
    char name[13], version[11];
    if (strlen(line) < 24)
        return;
    snprintf(name, sizeof name, "%.*s", (int)(strstr(line, "  ") ? strstr(line, "  ") - line : 12), line);
    snprintf(version, sizeof version, "%.*s", (int)strcspn(line + 13, " "), line + 13);
    const bool missing = strcmp(version, "missing") == 0;
    json_append(document, "libraries",
                json_pack("{s:s, s:o, s:o, s:o}", "name", name, "version", missing ? json_null() : json_string(version),
                          "file", missing ? json_null() : json_string(line + 24), "problem",
                          missing ? json_string(line + 24) : json_null()));
}

/* Lines without an indent begin a section: "libraries", "GPU 0, ...", "no GPU...", "kernel cache". */
static void add_report(json_t *document, char *report) {
    char section = ' ';
    json_t *gpu = NULL;
    json_object_set_new(document, "libraries", json_array());
    json_object_set_new(document, "gpus", json_array());
    for (char *line = strtok(report, "\n"); line; line = strtok(NULL, "\n")) {
        const bool entry = line[0] == ' ';
        int ordinal, length = 0;
        if (!entry)
            section = line[0];
        if (sscanf(line, "GPU %d%n", &ordinal, &length) == 1) {
            gpu = json_pack("{s:i, s:s}", "ordinal", ordinal, "state", line + length + strspn(line + length, ",: "));
            json_append(document, "gpus", gpu);
        } else if (section == 'n') {
            json_object_set_new(document, "no_gpu", json_string(line));
        } else if (entry && section == 'l') {
            add_library(document, line + 2);
        } else if (entry && section == 'G') {
            add_property(gpu, line + 2);
        } else if (entry) {
            json_object_set_new(document, "kernel_cache", json_string(line + 2));
        }
    }
}

int devices_command(const options *o, char **words, int count) {
    (void)words;
    (void)count;
    conv_fft_context *context;
    const int failed = open_context(o, &context);
    if (failed)
        return failed;
    char report[32768];
    json_t *document = o->json ? json_begin("devices", context) : NULL;
    if (!o->json)
        printf("libconv_fft %s\n%s\n", conv_fft_version_string(), conv_fft_context_description(context));
    conv_fft_context_destroy(context);
    if (conv_fft_devices_report(report, sizeof report, NULL) != CONV_FFT_SUCCESS) {
        json_decref(document);
        return library_error("no report");
    }
    if (!o->json) {
        fputs(report, stdout);
        return 0;
    }
    add_report(document, report);
    return json_end(document);
}
