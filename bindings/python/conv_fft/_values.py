# SPDX-License-Identifier: Apache-2.0
"""Checks of values before they go to C, which would cut a large number, or a text at a zero byte, silently."""
import os
from operator import index


def integer(value, name, least=0, most=2 ** 63 - 1):
    """An integer of Python or of any package as a Python int."""
    try:
        number = index(value)
    except TypeError:
        number = None
    if number is None or not least <= number <= most:
        raise ValueError("%s is %r; it must be an integer from %d to %d" % (name, value, least, most))
    return number


def named(table, value, name):
    if not isinstance(value, str) or value not in table:
        raise ValueError("%s is %r; it must be one of %s" % (name, value, ", ".join(map(repr, table))))
    return table[value]


def c_string(value, name):
    """The bytes of a str or a path."""
    try:
        text = os.fsencode(value)
    except TypeError:
        text = None
    if text is None or b"\0" in text:
        raise ValueError("%s is %r; it must be text without the character \\0" % (name, value))
    return text
