/* SPDX-License-Identifier: Apache-2.0 */
/* Tuning records: their keys, the set in memory, the text of a line. Files of records are in test_record_file.c. */
#include "conv/plan/strategy.h"
#include "support/records.h"

#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void workspace_classes(void **state) {
    (void)state;
    assert_int_equal(cf_workspace_class(0), 0);
    assert_int_equal(cf_workspace_class(1), 1);
    assert_int_equal(cf_workspace_class(100000000), 1 << 26);
    assert_int_equal(cf_workspace_class(1 << 26), 1 << 26);
    assert_int_equal(cf_workspace_class((1 << 27) - 1), 1 << 26);
    assert_int_equal(cf_workspace_class(UINT64_MAX), UINT64_C(1) << 62);
}

static cf_record_key key_of(const char *line, int passes, int keep, uint64_t limit) {
    conv_fft_problem p;
    cf_layer layer;
    cf_record_key key;
    assert_int_equal(conv_fft_problem_parse(line, &p, NULL, 0), CONV_FFT_SUCCESS);
    assert_int_equal(cf_layer_make(&p, &layer), CONV_FFT_SUCCESS);
    assert_int_equal(cf_record_key_make(&layer, passes, keep, limit, &key), CONV_FFT_SUCCESS);
    return key;
}

/* The key has every field of the problem and everything else that a decision depends on. Another spelling gives the
 * same key. */
static void keys_have_every_field(void **state) {
    (void)state;
    static const char *const lines[] = {
        "in=2x4x12x13 kernel=3x3",
        "in=3x4x12x13 kernel=3x3",
        "in=2x8x12x13 out=4 kernel=3x3",
        "in=2x4x12x14 kernel=3x3",
        "in=2x4x12x13 out=8 kernel=3x3",
        "in=2x4x12x13 kernel=3x4",
        "in=2x4x12x13 kernel=3x3 stride=2",
        "in=2x4x12x13 kernel=3x3 dilation=2",
        "in=2x4x12x13 kernel=3x3 pad=1",
        "in=2x4x12x13 kernel=3x3 pad=1:2",
        "in=2x4x12x13 kernel=3x3 pad=1 mode=reflect",
        "in=2x4x12x13 kernel=3x3 groups=2",
        "in=2x4x12x13 kernel=3x3 layout=last",
        "in=2x4x12x13 kernel=3x3 wlayout=last",
        "in=2x4x12x13 kernel=3x3 dtype=fp16",
        "in=2x4x12x13 kernel=3x3 dtype=fp16 gw=fp32",
        "in=2x4x12x13 kernel=3x3 dtype=bf16",
        "in=2x4x12x13 kernel=3x3 math=tf32",
        "in=2x4x156 kernel=9",
    };
    const size_t count = sizeof lines / sizeof lines[0];
    for (size_t i = 0; i < count; ++i) {
        const cf_record_key a = key_of(lines[i], 1, 0, 0);
        for (size_t k = 0; k < count; ++k) {
            const cf_record_key b = key_of(lines[k], 1, 0, 0);
            assert_int_equal(cf_record_key_compare(&a, &b) == 0, i == k);
        }
    }
    const cf_record_key plain = key_of("in=2x4x12x13 kernel=3x3", 1, 0, 0);
    const cf_record_key same = key_of("L1 kernel=3 in=2x4x12x13 out=4 math=fp32 # the same", 1, 0, 0);
    assert_int_equal(cf_record_key_compare(&plain, &same), 0);
    const cf_record_key others[] = {key_of(lines[0], 6, 0, 0), key_of(lines[0], 1, 1, 0), key_of(lines[0], 1, 0, 5)};
    for (size_t i = 0; i < 3; ++i)
        assert_int_not_equal(cf_record_key_compare(&plain, &others[i]), 0);

    conv_fft_problem p;
    cf_layer layer;
    cf_record_key strided;
    assert_int_equal(conv_fft_problem_parse(lines[0], &p, NULL, 0), CONV_FFT_SUCCESS);
    const int64_t strides[] = {1000, 200, 16, 1};
    memcpy(p.x_stride, strides, sizeof strides);
    assert_int_equal(cf_layer_make(&p, &layer), CONV_FFT_SUCCESS);
    assert_int_equal(cf_record_key_make(&layer, 1, 0, 0, &strided), CONV_FFT_SUCCESS);
    assert_int_not_equal(cf_record_key_compare(&plain, &strided), 0);
    assert_non_null(strstr(strided.problem, "# x_stride=1000,200,16,1"));
}

static void sets_are_sorted(void **state) {
    (void)state;
    cf_records set = {0};
    for (int i = 0; i < 200; ++i) {
        const cf_record r = test_record(i * 37 % 200, 1.0, 1);
        bool changed;
        assert_int_equal(cf_records_add(&set, &r, CONV_FFT_KEEP_MINE, &changed), CONV_FFT_SUCCESS);
        assert_true(changed);
    }
    assert_int_equal(set.count, 200);
    for (size_t i = 1; i < set.count; ++i)
        assert_true(cf_record_key_compare(&set.items[i - 1]->key, &set.items[i]->key) < 0);
    for (int i = 0; i < 200; ++i) {
        const cf_record r = test_record(i, 1.0, 1);
        const cf_record *found = cf_records_find(&set, &r.key, "");
        assert_non_null(found);
        assert_string_equal(found->strategy[0], r.strategy[0]);
    }
    const cf_record absent = test_record(200, 1.0, 1);
    assert_null(cf_records_find(&set, &absent.key, ""));
    cf_records_clear(&set);
}

static void policies(void **state) {
    (void)state;
    const cf_record fast_old = test_record(1, 1.0, 10), slow_new = test_record(1, 2.0, 20);
    static const struct {
        conv_fft_tune_policy policy;
        bool slow_replaces_fast, fast_replaces_slow;
    } cases[] = {{CONV_FFT_KEEP_FASTEST, false, true},
                 {CONV_FFT_KEEP_NEWEST, true, false},
                 {CONV_FFT_KEEP_MINE, false, false},
                 {CONV_FFT_KEEP_THEIRS, true, true}};
    for (size_t i = 0; i < 4; ++i) {
        assert_int_equal(cf_record_replaces(&slow_new, &fast_old, cases[i].policy), cases[i].slow_replaces_fast);
        assert_int_equal(cf_record_replaces(&fast_old, &slow_new, cases[i].policy), cases[i].fast_replaces_slow);
    }
    /* With equal times the strategy decides, in either order. */
    cf_record a = fast_old, b = fast_old;
    strcpy(b.strategy[0], "staged basis=99");
    assert_int_not_equal(cf_record_replaces(&a, &b, CONV_FFT_KEEP_NEWEST),
                         cf_record_replaces(&b, &a, CONV_FFT_KEEP_NEWEST));
    assert_false(cf_record_replaces(&a, &a, CONV_FFT_KEEP_NEWEST));
    /* Among records of one place the last one is taken, even if it was measured first. */
    cf_record chosen = fast_old;
    chosen.decided = 30;
    assert_true(cf_record_replaces(&chosen, &slow_new, CF_KEEP_LATEST));
    assert_false(cf_record_replaces(&slow_new, &chosen, CF_KEEP_LATEST));
    assert_false(cf_record_replaces(&chosen, &slow_new, CONV_FFT_KEEP_NEWEST));
    /* The place of a record counts more than its time. */
    b = slow_new;
    a.rank = 1;
    assert_true(cf_record_replaces(&a, &b, CONV_FFT_KEEP_NEWEST));
    assert_false(cf_record_replaces(&b, &a, CONV_FFT_KEEP_THEIRS));
}

static void round_trip(void **state) {
    (void)state;
    cf_record r = test_record(7, 0.123456789, 1764000000123456), found;
    r.key.passes = CONV_FFT_BACKWARD;
    r.key.keep = 3;
    r.key.workspace_class = 1 << 28;
    strcpy(r.strategy[CF_PASS_DATA], "staged basis=64x64 \\\"quoted\\\" {}[]");
    strcpy(r.strategy[CF_PASS_WEIGHTS], "staged basis=72x64");
    r.strategy[CF_PASS_FORWARD][0] = '\0';
    memset(r.strategy[CF_PASS_FORWARD], 0, sizeof r.strategy[0]);
    strcpy(r.library, "cudnn 9.19.0");
    r.direct_ms = 0.5;
    r.model_ms = 0.75;
    r.fastest_ms = 0.0625;
    r.processors = 1.5;
    r.mode = CONV_FFT_TUNE_EXHAUSTIVE;
    char line[CF_LINE_BYTES];
    cf_fingerprint header;
    assert_int_equal(cf_record_format(&r, line), CONV_FFT_SUCCESS);
    assert_int_equal(line[strlen(line) - 1], '\n');
    assert_int_equal(cf_line_read(line, strlen(line) - 1, &header, &found), CF_LINE_RECORD);
    assert_int_equal(cf_record_key_compare(&r.key, &found.key), 0);
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass)
        assert_string_equal(found.strategy[pass], r.strategy[pass]);
    assert_string_equal(found.library, r.library);
    assert_true(fabs(found.ms - r.ms) < 1e-8 && fabs(found.predicted_ms - r.predicted_ms) < 1e-8);
    assert_true(found.model_ms == 0.75 && found.fastest_ms == 0.0625 && found.processors == 1.5);
    assert_true(found.direct_ms == 0.5 && found.workspace_bytes == 4096 && found.candidates == 8);
    assert_true(found.mode == r.mode && found.written == r.written && found.decided == r.written);
    r.decided = r.written + 7;
    assert_int_equal(cf_record_format(&r, line), CONV_FFT_SUCCESS);
    assert_int_equal(cf_line_read(line, strlen(line) - 1, &header, &found), CF_LINE_RECORD);
    assert_true(found.written == r.written && found.decided == r.decided);

    const cf_fingerprint f = test_fingerprint("NVIDIA H200");
    assert_int_equal(cf_header_format(&f, line), CONV_FFT_SUCCESS);
    assert_int_equal(cf_line_read(line, strlen(line) - 1, &header, &found), CF_LINE_HEADER);
    assert_true(cf_fingerprint_equal(&f, &header));
    assert_string_equal(header.driver, "CUDA 13.0");
}

/* Records belong to a device of one name and one kind, and to one library version. A new driver does not invalidate
 * them. */
static void equal_devices(void **state) {
    (void)state;
    const cf_fingerprint f = test_fingerprint("NVIDIA H200");
    cf_fingerprint other = f;
    snprintf(other.driver, sizeof other.driver, "CUDA 14.1");
    assert_true(cf_fingerprint_equal(&f, &other));
    snprintf(other.kind, sizeof other.kind, "gpu, compute 9.0, multiprocessors 66");
    assert_false(cf_fingerprint_equal(&f, &other));
    other = test_fingerprint("NVIDIA H100");
    assert_false(cf_fingerprint_equal(&f, &other));
    other = f;
    ++other.version;
    assert_false(cf_fingerprint_equal(&f, &other));
    other = f;
    ++other.abi;
    assert_false(cf_fingerprint_equal(&f, &other));
}

/* Records of an older interface are read. Records of a later interface are left alone. */
static void older_interfaces(void **state) {
    (void)state;
    const cf_fingerprint written = test_fingerprint("NVIDIA H200");
    cf_fingerprint device = written;
    assert_true(cf_fingerprint_reads(&device, &written));
    ++device.abi;
    assert_true(cf_fingerprint_reads(&device, &written));
    assert_false(cf_fingerprint_reads(&written, &device));
    ++device.version;
    assert_false(cf_fingerprint_reads(&device, &written));
    device = test_fingerprint("NVIDIA H100");
    ++device.abi;
    assert_false(cf_fingerprint_reads(&device, &written));
}

/* After the next change of the interface, all shipped records are still read, and their lines parse. */
static void shipped_records_after_a_bump(void **state) {
    (void)state;
    cf_fingerprint device = test_fingerprint("NVIDIA H200");
    ++device.abi;
    DIR *const folder = opendir("../tuning/nvidia-h200");
    int files = 0;
    assert_non_null(folder);
    for (const struct dirent *item; (item = readdir(folder)) != NULL; files++) {
        cf_records records = {0};
        cf_file_counts counts;
        if (item->d_name[0] == '.') {
            files--;
            continue;
        }
        assert_int_equal(
            cf_record_file_read(dirfd(folder), item->d_name, &device, false, CF_RANK_CACHE, &records, &counts),
            CONV_FFT_SUCCESS);
        assert_true(counts.records > 0 && counts.foreign + counts.damaged + counts.unknown == 0);
        for (size_t i = 0; i < records.count; i++) {
            const cf_record *const r = records.items[i];
            conv_fft_problem p;
            assert_int_equal(conv_fft_problem_parse(r->key.problem, &p, NULL, 0), CONV_FFT_SUCCESS);
            for (int pass = 0; pass < CF_PASS_COUNT; pass++) {
                cf_strategy s;
                if (r->key.passes & 1 << pass)
                    assert_int_equal(cf_strategy_parse(r->strategy[pass], p.rank, &s), CONV_FFT_SUCCESS);
            }
        }
        cf_records_clear(&records);
    }
    closedir(folder);
    assert_true(files > 0);
}

/* A line with one changed byte is no record, because its CRC is wrong. Neither is a line that is cut anywhere. */
static void every_byte_counts(void **state) {
    (void)state;
    const cf_record r = test_record(3, 1.5, 99);
    char line[CF_LINE_BYTES];
    cf_fingerprint header;
    cf_record found;
    assert_int_equal(cf_record_format(&r, line), CONV_FFT_SUCCESS);
    const size_t length = strlen(line) - 1;
    for (size_t i = 0; i < length; ++i) {
        for (int bit = 0; bit < 8; ++bit) {
            line[i] ^= (char)(1 << bit);
            assert_int_equal(cf_line_read(line, length, &header, &found), CF_LINE_DAMAGED);
            line[i] ^= (char)(1 << bit);
        }
        if (i > 0)
            assert_int_equal(cf_line_read(line, i, &header, &found), CF_LINE_DAMAGED);
    }
    assert_int_equal(cf_line_read(line, length, &header, &found), CF_LINE_RECORD);
}

#define GOOD                                                                                                     \
    "\"problem\":\"in=1x1x9\",\"passes\":1,\"keep\":0,\"workspace_class\":0,\"strategy\":[\"staged\"],\"ms\":1," \
    "\"predicted_ms\":1,\"workspace\":0,\"candidates\":2,\"mode\":2,\"written\":5"

/* Lines with a right CRC and wrong content. */
static void wrong_content_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *content;
        cf_line_kind kind;
    } cases[] = {
        {GOOD "}", CF_LINE_RECORD},
        {GOOD ",\"of a later version\":[1,2]}", CF_LINE_RECORD},
        {GOOD, CF_LINE_UNKNOWN},
        {GOOD "}}", CF_LINE_UNKNOWN},
        {GOOD ",\"ms\":2}", CF_LINE_UNKNOWN},
        {"}", CF_LINE_UNKNOWN},
        {"\"problem\":1}", CF_LINE_UNKNOWN},
        {GOOD ",\"direct_ms\":-1}", CF_LINE_UNKNOWN},
        {GOOD ",\"direct_ms\":\"1\"}", CF_LINE_UNKNOWN},
        {GOOD ",\"model_ms\":-1}", CF_LINE_UNKNOWN},
        {GOOD ",\"fastest_ms\":\"1\"}", CF_LINE_UNKNOWN},
        {GOOD ",\"processors\":-1}", CF_LINE_UNKNOWN},
        {GOOD ",\"processors\":[]}", CF_LINE_UNKNOWN},
        {GOOD ",\"library\":7}", CF_LINE_UNKNOWN},
        {GOOD ",\"decided\":-1}", CF_LINE_UNKNOWN},
        {"\"format\":\"conv_fft records\",\"version\":1,\"abi\":1}", CF_LINE_UNKNOWN},
        {"\"format\":\"conv_fft records\",\"version\":2,\"abi\":9}", CF_LINE_HEADER},
        {"\"format\":\"other records\",\"version\":1,\"abi\":1,\"device\":\"a\",\"kind\":\"b\"}", CF_LINE_UNKNOWN},
        {"\"format\":\"conv_fft records\",\"version\":-1,\"abi\":1,\"device\":\"a\",\"kind\":\"b\"}", CF_LINE_UNKNOWN},
        {"\"format\":\"conv_fft records\",\"version\":1,\"abi\":1,\"device\":\"a\\u001b[2J\",\"kind\":\"b\"}",
         CF_LINE_UNKNOWN},
    };
    char line[CF_LINE_BYTES];
    cf_fingerprint header;
    cf_record record;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        const size_t length = test_sealed_line(cases[i].content, line);
        if (cf_line_read(line, length, &header, &record) != cases[i].kind)
            fail_msg("%s is read as %d", line, (int)cf_line_read(line, length, &header, &record));
    }
    /* Each field of a record is replaced by an invalid value. */
    static const struct {
        const char *from, *to;
    } bad[] = {
        {"\"passes\":1", "\"passes\":0"},
        {"\"passes\":1", "\"passes\":8"},
        {"\"passes\":1", "\"passes\":6"}, /* two strategies then */
        {"\"passes\":1", "\"passes\":1.0"},
        {"\"keep\":0", "\"keep\":4"},
        {"\"keep\":0", "\"keep\":-1"},
        {"\"workspace_class\":0", "\"workspace_class\":3"},
        {"\"workspace\":0", "\"workspace\":99999999999999999999"},
        {"\"ms\":1,", "\"ms\":-1,"},
        {"\"ms\":1,", "\"ms\":1e400,"},
        {"\"ms\":1,", "\"ms\":1e99,"},
        {"\"ms\":1,", "\"ms\":null,"},
        {"\"mode\":2", "\"mode\":1"},
        {"\"mode\":2", "\"mode\":4"},
        {"\"written\":5", "\"written\":-5"},
        {"[\"staged\"]", "[]"},
        {"[\"staged\"]", "\"staged\""},
        {"[\"staged\"]", "[\"a\",\"b\"]"},
        {"[\"staged\"]", "[[[[[[\"a\"]]]]]]"},
        {"in=1x1x9", "in=1\\u0000x1x9"},
        {"in=1x1x9", "in=\\n1x1x9"},
        {"in=1x1x9", "\\u00e9"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
        char content[CF_LINE_BYTES];
        const char *at = strstr(GOOD "}", bad[i].from);
        assert_non_null(at);
        snprintf(content, sizeof content, "%.*s%s%s", (int)(at - (GOOD "}")), GOOD "}", bad[i].to,
                 at + strlen(bad[i].from));
        const size_t length = test_sealed_line(content, line);
        if (cf_line_read(line, length, &header, &record) != CF_LINE_UNKNOWN)
            fail_msg("%s is read as %d", line, (int)cf_line_read(line, length, &header, &record));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workspace_classes), cmocka_unit_test(keys_have_every_field),
        cmocka_unit_test(sets_are_sorted),   cmocka_unit_test(policies),
        cmocka_unit_test(round_trip),        cmocka_unit_test(equal_devices),
        cmocka_unit_test(older_interfaces),  cmocka_unit_test(shipped_records_after_a_bump),
        cmocka_unit_test(every_byte_counts), cmocka_unit_test(wrong_content_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
