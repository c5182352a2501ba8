#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Give tuning records and results the family words of today. Words change, numbers do not.

    convert_words.py FILE...      rewrite records (.jsonl) and results (.csv)
    convert_words.py --self-test

    strategy lines    direct -> cudnn, reference -> cufft
                      fused -> long1d for layers of family long1d: one axis, one tile, a power of two from 2048 on
    names in results  ours-direct -> ours-cudnn, ours-reference -> ours-cufft,
                      ours-fused -> ours-long1d with such a line

A line of records begins with the CRC-32 of the rest of it, which is computed again. All other digits of a file must be
the same before and after, or the file is left as it is.
"""
import re
import sys
import zlib
from pathlib import Path

BEFORE_CRC = '{"crc":"'
COVERED_AT = len(BEFORE_CRC) + 8 + 2
LINE = r"(?<![^\s\",])"  # a strategy line begins a field, or follows a space


def is_long(match):
    basis = int(match[1])
    return 2048 <= basis <= 2097152 and basis & (basis - 1) == 0


def convert_strategies(text):
    text = re.sub(LINE + r"direct(?= algorithm=)", "cudnn", text)
    text = re.sub(LINE + r"reference(?= basis=)", "cufft", text)
    return re.sub(LINE + r"fused(?= basis=(\d+) tiles=1 dilation=step spectrum=fp32)",
                  lambda match: "long1d" if is_long(match) else "fused", text)


def convert_names(line):
    line = line.replace(",ours-direct,", ",ours-cudnn,").replace(",ours-reference,", ",ours-cufft,")
    return line.replace(",ours-fused,", ",ours-long1d,") if ",long1d basis=" in line else line


def with_crc(line):
    covered = line[COVERED_AT:]
    return f'{BEFORE_CRC}{zlib.crc32(covered.encode()):08x}",{covered}'


def convert(text, is_records):
    lines = [convert_strategies(line) for line in text.split("\n")]
    if is_records:
        return "\n".join(with_crc(new) if new != old else old for new, old in zip(lines, text.split("\n")))
    return "\n".join(convert_names(line) for line in lines)


def digits(text, is_records):
    lines = (line[COVERED_AT:] if is_records else line for line in text.split("\n"))
    return re.findall(r"\d+", re.sub(r"\blong1d\b", "fused", "\n".join(lines)))


def self_test():
    cases = [
        ("a,b,ours-fused,1.5,fused basis=2048 tiles=1 dilation=step spectrum=fp32",
         "a,b,ours-long1d,1.5,long1d basis=2048 tiles=1 dilation=step spectrum=fp32"),
        ("a,b,ours-fused,1.5,fused basis=1152 tiles=28 dilation=step spectrum=fp32", None),
        ("a,b,ours-fused,1.5,fused basis=3072 tiles=1 dilation=step spectrum=fp32", None),
        ("a,b,ours-fused,1.5,fused basis=64x2048 tiles=1x1 dilation=step spectrum=fp32", None),
        ("a,b,ours-reference,2,reference basis=8x8 chunk=1", "a,b,ours-cufft,2,cufft basis=8x8 chunk=1"),
        ("a,b,ours-direct,2,direct algorithm=old:GEMM:fma", "a,b,ours-cudnn,2,cudnn algorithm=old:GEMM:fma"),
        ("a,b,direct,2,loops", None),
        ("a,b,tuned,2,fused basis=8x5 tiles=1x2 dilation=step spectrum=fp32; direct algorithm=graph:0",
         "a,b,tuned,2,fused basis=8x5 tiles=1x2 dilation=step spectrum=fp32; cudnn algorithm=graph:0"),
    ]
    for old, new in cases:
        if convert(old, False) != (new or old):
            yield f"{old}: {convert(old, False)}"
    record = with_crc(BEFORE_CRC + '00000000","strategy":["direct algorithm=graph:7"],"direct_ms":1.5}')
    expected = with_crc(BEFORE_CRC + '00000000","strategy":["cudnn algorithm=graph:7"],"direct_ms":1.5}')
    if convert(record, True) != expected or record == expected:
        yield f"{record}: {convert(record, True)}"


def main():
    if sys.argv[1:] == ["--self-test"]:
        found = list(self_test())
    else:
        found = []
        for path in map(Path, sys.argv[1:]):
            is_records, old = path.suffix == ".jsonl", path.read_text()
            new = convert(old, is_records)
            if digits(new, is_records) != digits(old, is_records):
                found.append(f"{path}: numbers would change")
            elif new != old:
                path.write_text(new)
    print("\n".join(found) or "convert words: good")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
