/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CF_CORE_CLOSEST_H
#define CF_CORE_CLOSEST_H

/* The word of a list that ends with NULL which was probably meant by a misspelt one, or NULL. It differs by at most a
 * third of the letters, two at most: wrong, missing, superfluous, or two neighbours exchanged. */
const char *cf_closest(const char *misspelt, const char *const *words);

#endif
