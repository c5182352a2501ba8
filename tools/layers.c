/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that take problems: of the command line, of --file, or of networks. */
#include "main.h"

#include "interrupt.h"

#include <stdio.h>

/* Bad lines are passed over, and so are layers for which the command fails. */
static int each_of_file(const options *o, conv_fft_context *context, layer_function function, json_t *document) {
    network n;
    int failed = network_read_all(&o->file, 1, 0, &n);
    for (int64_t i = 0; i < n.count && !interrupted; ++i) {
        const int status = function(o, context, &n.layers[i], document);
        failed = failed ? failed : status;
        fflush(stdout);
    }
    failed = failed ? failed : n.bad > 0;
    network_free(&n);
    return failed;
}

static int of_words(const options *o, conv_fft_context *context, char **words, int count, layer_function function,
                    json_t *document) {
    char line[1024];
    size_t length = 0;
    for (int i = 0; i < count; ++i) {
        const int added = snprintf(line + length, sizeof line - length, "%s%s", i ? " " : "", words[i]);
        length += (size_t)added;
        if (length >= sizeof line)
            return usage_error("the problem is too long", NULL);
    }
    layer_line layer = {.file = NULL};
    if (layer_read(line, length, &layer) != 0)
        return 1;
    return layer.problem.rank > 0 ? function(o, context, &layer, document) : 0;
}

int for_each_layer(const options *o, const char *name, char **words, int count, layer_function function) {
    char what[64];
    snprintf(what, sizeof what, "%s needs a problem or --file", name);
    if (!o->file && count == 0)
        return usage_error(what, NULL);
    snprintf(what, sizeof what, "%s takes a problem or --file, not both", name);
    if (o->file && count > 0)
        return usage_error(what, NULL);
    conv_fft_context *context;
    int failed = open_context(o, &context);
    if (failed)
        return failed;
    interrupt_begin();
    json_t *const document = o->json ? json_begin_layers(name, context) : NULL;
    failed =
        o->file ? each_of_file(o, context, function, document) : of_words(o, context, words, count, function, document);
    conv_fft_context_destroy(context);
    if (document) {
        const int status = json_end(document);
        failed = failed ? failed : status;
    }
    return interrupt_status(failed);
}

int with_network(const options *o, char **words, int count, network_function function) {
    network n;
    conv_fft_context *context = NULL;
    int failed = network_read_all(words, count, o->count, &n);
    if (n.count > 0) {
        int status = open_context(o, &context);
        if (!status)
            status = function(o, context, &n);
        failed = failed ? failed : status;
    }
    failed = failed ? failed : n.bad > 0;
    conv_fft_context_destroy(context);
    network_free(&n);
    return interrupt_status(failed);
}
