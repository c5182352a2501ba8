/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/driver/properties.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct fact {
    const char *key;
    size_t offset;
    cf_cu_attribute attribute;
    int minimum;
} fact;

#define CF_FACT(field, number, cuda_name, min_value) {#field, offsetof(cf_gpu_properties, field), number, min_value},
static const fact list[] = {CF_GPU_PROPERTIES(CF_FACT)};
#undef CF_FACT

enum {
    PROPERTIES = sizeof list / sizeof list[0]
};

static int64_t *at(cf_gpu_properties *properties, size_t offset) {
    return (int64_t *)(void *)((char *)properties + offset);
}

conv_fft_status cf_gpu_properties_read(const cf_driver *driver, cf_cu_device device, cf_gpu_properties *properties) {
    *properties = (cf_gpu_properties){0};
    size_t bytes = 0;
    CF_FORWARD(CF_CU(driver, cuDeviceGetName, properties->name, (int)sizeof properties->name, device));
    CF_FORWARD(CF_CU(driver, cuDeviceTotalMem, &bytes, device));
    properties->memory_bytes = (int64_t)bytes;
    for (int i = 0; i < PROPERTIES; ++i) {
        int value = 0;
        CF_FORWARD(CF_CU(driver, cuDeviceGetAttribute, &value, list[i].attribute, device));
        *at(properties, list[i].offset) = value;
    }
    return CONV_FFT_SUCCESS;
}

/* The state while a file is read. `seen` has one bit for each property, then one for memory_bytes, then one for
 * name. */
typedef struct reading {
    const char *path;
    int line;
    cf_gpu_properties *properties;
    uint32_t seen;
} reading;

enum {
    MEMORY = PROPERTIES,
    NAME = PROPERTIES + 1,
    KEYS = PROPERTIES + 2
};

static const char *key_of(int index) {
    return index < PROPERTIES ? list[index].key : index == MEMORY ? "memory_bytes" : "name";
}

static int find_key(const char *key) {
    for (int i = 0; i < KEYS; ++i)
        if (strcmp(key_of(i), key) == 0)
            return i;
    return -1;
}

static conv_fft_status read_value(reading *r, int index, const char *text) {
    if (index == NAME) {
        CF_REQUIRE(*text && strlen(text) < sizeof r->properties->name, "%s:%d: name must have 1 to %zu bytes", r->path,
                   r->line, sizeof r->properties->name - 1);
        memcpy(r->properties->name, text, strlen(text) + 1);
        return CONV_FFT_SUCCESS;
    }
    char *end;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    const int minimum = index == MEMORY ? 1 : list[index].minimum;
    CF_REQUIRE(isdigit((unsigned char)*text) && *end == '\0' && errno == 0 && value >= minimum,
               "%s:%d: %s is \"%.40s\"; it must be a whole number from %d on", r->path, r->line, key_of(index), text,
               minimum);
    *at(r->properties, index == MEMORY ? offsetof(cf_gpu_properties, memory_bytes) : list[index].offset) = value;
    return CONV_FFT_SUCCESS;
}

/* Remove white space at both ends. */
static char *trim(char *text) {
    text += strspn(text, " \t\r\n");
    size_t length = strlen(text);
    while (length && isspace((unsigned char)text[length - 1]))
        --length;
    text[length] = '\0';
    return text;
}

static conv_fft_status read_line(reading *r, char *line) {
    line[strcspn(line, "#")] = '\0';
    char *const key = trim(line);
    if (!*key)
        return CONV_FFT_SUCCESS;
    char *const equals = strchr(key, '=');
    CF_REQUIRE(equals, "%s:%d: \"%.40s\" is not key=value", r->path, r->line, key);
    *equals = '\0';
    const int index = find_key(trim(key));
    CF_REQUIRE(index >= 0, "%s:%d: \"%.40s\" is not a property of a GPU", r->path, r->line, trim(key));
    CF_REQUIRE(!(r->seen >> index & 1), "%s:%d: %s is given twice", r->path, r->line, key_of(index));
    r->seen |= (uint32_t)1 << index;
    return read_value(r, index, trim(equals + 1));
}

/* The state in a report of conv_fft_devices_report(), whose other lines are skipped. The first GPU with
 * properties counts. */
typedef enum part {
    PART_NONE, /* the file is no report: it has properties only */
    PART_OTHER,
    PART_GPU,
    PART_END
} part;

static part next_part(part now, const char *line, const reading *r) {
    if (r->line == 1 && (strncmp(line, "libconv_fft ", 12) == 0 || strncmp(line, "libraries", 9) == 0))
        return PART_OTHER;
    if (now == PART_NONE || now == PART_END || line[0] == ' ')
        return now;
    return r->seen ? PART_END : strncmp(line, "GPU ", 4) == 0 ? PART_GPU : PART_OTHER;
}

static conv_fft_status read_file(reading *r, FILE *file) {
    char line[512];
    part where = PART_NONE;
    while (fgets(line, sizeof line, file)) {
        ++r->line;
        where = next_part(where, line, r);
        if (where != PART_NONE && (where != PART_GPU || line[0] != ' '))
            continue;
        CF_REQUIRE(strlen(line) + 1 < sizeof line, "%s:%d: the line is longer than %zu bytes", r->path, r->line,
                   sizeof line - 2);
        CF_FORWARD(read_line(r, line));
    }
    if (ferror(file))
        return cf_fail(CONV_FFT_IO_ERROR, "%s cannot be read", r->path);
    CF_REQUIRE(where == PART_NONE || r->seen, "%s is a report without the properties of a GPU", r->path);
    for (int i = 0; i < KEYS; ++i)
        CF_REQUIRE(r->seen >> i & 1, "%s: %s is missing", r->path, key_of(i));
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_gpu_properties_load(const char *path, cf_gpu_properties *properties) {
    cf_gpu_properties read = {0};
    FILE *const file = fopen(path, "r");
    if (!file)
        return cf_fail(CONV_FFT_IO_ERROR, "%s cannot be opened: %s", path, strerror(errno));
    reading r = {.path = path, .properties = &read};
    const conv_fft_status status = read_file(&r, file);
    fclose(file);
    if (status == CONV_FFT_SUCCESS)
        *properties = read;
    return status;
}

void cf_gpu_properties_format(const cf_gpu_properties *properties, const char *indent, cf_text *text) {
    cf_text_add(text, "%sname=%s\n%smemory_bytes=%lld\n", indent, properties->name, indent,
                (long long)properties->memory_bytes);
    for (int i = 0; i < PROPERTIES; ++i) {
        int64_t value;
        memcpy(&value, (const char *)properties + list[i].offset, sizeof value);
        cf_text_add(text, "%s%s=%lld\n", indent, list[i].key, (long long)value);
    }
}

void cf_gpu_architecture(const cf_gpu_properties *properties, char architecture[CF_ARCHITECTURE_BYTES]) {
    /* From 9.0 on, the letter `a` selects instructions that only this generation has. */
    snprintf(architecture, CF_ARCHITECTURE_BYTES, "sm_%d%d%s", (int)properties->compute_major % 100,
             (int)properties->compute_minor % 100, properties->compute_major >= 9 ? "a" : "");
}
