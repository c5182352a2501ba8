/* SPDX-License-Identifier: Apache-2.0 */
#include "core/strides.h"

#include "core/arith.h"

conv_fft_status cf_check_range(const char *field, int index, int64_t value, int64_t low, int64_t high) {
    if (value >= low && value <= high)
        return CONV_FFT_SUCCESS;
    char text[8] = "";
    if (index >= 0) {
        text[0] = '[', text[1] = (char)('0' + index), text[2] = ']', text[3] = '\0';
    }
    if (high == INT64_MAX)
        return cf_fail(CONV_FFT_INVALID_ARGUMENT, "%s%s is %lld; it must be at least %lld", field, text,
                       (long long)value, (long long)low);
    return cf_fail(CONV_FFT_INVALID_ARGUMENT, "%s%s is %lld; it must be %lld to %lld", field, text, (long long)value,
                   (long long)low, (long long)high);
}

conv_fft_status cf_strides_resolve(const char *field, const char *name, const int64_t *given, int rank,
                                   const int64_t *extents, conv_fft_layout layout, int64_t *strides) {
    int64_t total = 1;
    for (int i = 0; i < 2 + rank; ++i) {
        CF_REQUIRE(cf_multiply(&total, cf_max(1, extents[i])) && total <= CF_MAX_ELEMENTS,
                   "the extents of %s multiply to more than %lld elements", name, (long long)CF_MAX_ELEMENTS);
    }
    bool dense = true;
    for (int i = 0; i < 2 + rank; ++i)
        dense = dense && given[i] == 0;
    if (dense) {
        int order[5] = {0}, count = 0; /* fastest first */
        if (layout == CONV_FFT_CHANNELS_LAST)
            order[count++] = 1;
        for (int i = 1 + rank; i >= 2; --i)
            order[count++] = i;
        if (layout == CONV_FFT_CHANNELS_FIRST)
            order[count++] = 1;
        order[count++] = 0;
        int64_t stride = 1;
        for (int i = 0; i < count; ++i) {
            strides[order[i]] = stride;
            stride *= cf_max(1, extents[order[i]]);
        }
        return CONV_FFT_SUCCESS;
    }
    int64_t last = 0;
    for (int i = 0; i < 2 + rank; ++i) {
        CF_FORWARD(cf_check_range(field, i, given[i], 0, CF_MAX_ELEMENTS));
        int64_t reach = cf_max(0, extents[i] - 1);
        CF_REQUIRE(cf_multiply(&reach, given[i]) && cf_add(&last, reach) && last <= CF_MAX_ELEMENTS,
                   "%s[%d] is %lld; the last element must be less than %lld elements away", field, i,
                   (long long)given[i], (long long)CF_MAX_ELEMENTS);
        strides[i] = given[i];
    }
    return CONV_FFT_SUCCESS;
}

/* Axes are visited in order of stride. The stride of an axis must exceed the offset of the last element that the axes
 * before it reach together. Axes of extent 1 do not count. */
conv_fft_status cf_strides_check_distinct(const char *field, const char *name, const int64_t strides[5],
                                          const int64_t extents[5]) {
    bool done[5] = {false};
    int64_t reach = 0; /* offset of the last element of the axes done */
    for (int round = 0; round < 5; ++round) {
        int next = -1;
        for (int i = 0; i < 5; ++i) {
            if (!done[i] && (next < 0 || strides[i] < strides[next]))
                next = i;
        }
        done[next] = true;
        if (extents[next] <= 1)
            continue;
        CF_REQUIRE(strides[next] > reach,
                   "%s holds the stride %lld; it must be at least %lld, beyond what the smaller strides reach "
                   "together: %s is written, and no two of its elements may share an address",
                   field, (long long)strides[next], (long long)(reach + 1), name);
        reach += (extents[next] - 1) * strides[next];
    }
    return CONV_FFT_SUCCESS;
}
