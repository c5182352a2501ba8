/* SPDX-License-Identifier: Apache-2.0 */
#include "core/closest.h"

#include <string.h>

enum {
    MAX_LETTERS = 31, /* longer words are close to nothing */
    MAX_DISTANCE = 2
};

static int smaller(int a, int b) { return a < b ? a : b; }

/* The smallest number of changes that make b of a. rows[i][k] is that of the first i and k letters. */
static int distance(const char *a, const char *b) {
    const int n = (int)strlen(a), m = (int)strlen(b);
    int rows[MAX_LETTERS + 1][MAX_LETTERS + 1];
    for (int k = 0; k <= m; ++k)
        rows[0][k] = k;
    for (int i = 1; i <= n; ++i) {
        rows[i][0] = i;
        for (int k = 1; k <= m; ++k) {
            const int replaced = rows[i - 1][k - 1] + (a[i - 1] != b[k - 1]);
            rows[i][k] = smaller(replaced, smaller(rows[i - 1][k], rows[i][k - 1]) + 1);
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
                rows[i][k] = smaller(rows[i][k], rows[i - 2][k - 2] + 1);
        }
    }
    return rows[n][m];
}

const char *cf_closest(const char *misspelt, const char *const *words) {
    const size_t length = strlen(misspelt);
    const char *found = NULL;
    int best = smaller(MAX_DISTANCE, (int)smaller((int)length, MAX_LETTERS) / 3) + 1;
    for (; length <= MAX_LETTERS && *words; ++words) {
        const int own = strlen(*words) <= MAX_LETTERS ? distance(misspelt, *words) : best;
        if (own < best) {
            best = own;
            found = *words;
        }
    }
    return found;
}
