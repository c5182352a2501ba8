/* SPDX-License-Identifier: Apache-2.0 */
#include "common/program.h"

#include "common/message.h"
#include "tools/message.h"

#include <stdlib.h>

bool bench_options_read(const option_rule *rules, const char *help, int argc, char **argv, void *options, int *status) {
    char given[OPTIONS_MAX + 1];
    int first;
    const options_result result = options_read(rules, help, NULL, argc, argv, options, given, &first);
    *status = result == OPTIONS_SHOWN ? EXIT_SUCCESS : EXIT_FAILURE;
    if (result == OPTIONS_GOOD && first < argc)
        bench_message("unexpected argument %s; see %s --help", argv[first], program_name);
    return result == OPTIONS_GOOD && first == argc;
}
