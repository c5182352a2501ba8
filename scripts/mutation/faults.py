# SPDX-License-Identifier: Apache-2.0
"""The faults of scripts/mutants.py: those chosen by hand, those made mechanically, and a check of both."""
import difflib
import hashlib
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
HAND, EQUIVALENT = ROOT / "tests/mutants/hand.txt", ROOT / "tests/mutants/equivalent.txt"


class Refused(Exception):
    """An error in the arguments or the lists, as one sentence."""


class Mutant:
    def __init__(self, name, path, at, old, new, breaks):
        self.name, self.path, self.at, self.old, self.new, self.breaks = name, path, at, old, new, breaks

    def apply(self, text):
        assert text.startswith(self.old, self.at)
        return text[:self.at] + self.new + text[self.at + len(self.old):]

    @property
    def is_kernel(self):
        return self.path.endswith(".cuh")

    @property
    def line(self):
        return (ROOT / self.path).read_text().count("\n", 0, self.at) + 1

    def diff(self):
        text = (ROOT / self.path).read_text()
        old, new = text.splitlines(), self.apply(text).splitlines()
        lines = difflib.unified_diff(old, new, self.path, self.path, n=2, lineterm="")
        return "\n".join("    " + line for line in lines)


# ---------------------------------------------------------------------------------------------------- chosen by hand

def read_hand(text, read, where="tests/mutants/hand.txt"):
    """The mutants of a list; read(path) is the text of a file of the tree."""
    mutants, fields, number = [], None, 0

    def finish():
        if fields is None:
            return
        for key in ("file", "breaks", "needs", "-"):
            if not fields.get(key):
                raise Refused(f"{where}: {fields['name']} has no line '{key}'")
        old, new = "\n".join(fields["-"]), "\n".join(fields.get("+", []))
        try:
            content = read(fields["file"])
        except OSError:
            raise Refused(f"{where}: {fields['name']} names {fields['file']}, which is not there")
        count = content.count(old)
        if count != 1:
            raise Refused(f"{where}: the old text of {fields['name']} stands {count} times in {fields['file']}; "
                          f"it must stand there once:\n{old}")
        if any(other.name == fields["name"] for other in mutants):
            raise Refused(f"{where}: {fields['name']} is there twice")
        mutants.append(Mutant(fields["name"], fields["file"], content.index(old), old, new, fields["breaks"]))

    for number, line in enumerate(text.split("\n"), 1):
        key, _, rest = line.partition(" ")
        if not line.strip() or key.startswith("#"):
            continue
        if key == "==":
            finish()
            fields = {"name": rest.strip()}
        elif fields is not None and key in ("-", "+"):
            fields.setdefault(key, []).append(rest)
        elif fields is not None and key in ("file", "breaks", "needs"):
            fields[key] = rest.strip()
        else:
            raise Refused(f"{where}:{number}: '{line}' is neither of ==, file, breaks, needs, -, +, #")
    finish()
    return mutants


def read_equivalent(text, where="tests/mutants/equivalent.txt"):
    """Ids of mechanical mutants that change nothing, with the reasons: lines `ID REASON`."""
    reasons = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, _, reason = line.partition(" ")
        if not re.fullmatch(r"[0-9a-f]{8}(-\d+)?", name) or not reason.strip():
            raise Refused(f"{where}:{number}: '{line}' is not an id with a reason")
        reasons[name] = reason.strip()
    return reasons


# -------------------------------------------------------------------------------------------------- made mechanically

NOT_CODE = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S)
# Their arguments are sentences, or are not computed at all.
MESSAGES = re.compile(r"\b(cf_fail\w*|cf_log|fail_\w+|static_assert|_Static_assert|assert)\s*\(")
OPERATORS = {
    "+": ["-"], "-": ["+"], "*": ["+"], "/": ["*"], "%": ["/"], "<<": [">>"], ">>": ["<<"], "&": ["|"], "|": ["&"],
    "^": ["|"], "<": ["<=", ">"], "<=": ["<"], ">": [">=", "<"], ">=": [">"], "==": ["!="], "!=": ["=="], "&&": ["||"],
    "||": ["&&"], "+=": ["-="], "-=": ["+="], "*=": ["+="], "/=": ["*="], "|=": ["&="], "&=": ["|="],
}
OPERATOR = re.compile(r"(?<=\S) (%s) (?=\S)" % "|".join(re.escape(o) for o in sorted(OPERATORS, key=len, reverse=True)))
NUMBER = re.compile(r"(?<![\w.])(\d+)(?=[^\w.])")
SIGN = re.compile(r"(?:[(\[,{=?:]|return) ?(-)(?=[\w(])")
NOT = re.compile(r"(?<=[( ])(!)(?=[\w(])")
STEP = re.compile(r"(\+\+|--)(?=\w)")
# One line, and no declaration; what only gives back memory or files shows in no plain build.
STATEMENT = re.compile(r"(?<=[;{})e]\n)( +)((?!return|break|continue|goto|typedef|using|CF_PRAGMA|case|default)"
                       r"[*\w][\w.>\-\[\]*:]*(?: (?:[-+*/|&]?=) |\()[^;{}\n]*;)(?=\n)")
GIVES_BACK = re.compile(r"(free|close\w*|\w*destroy|\w*_clear|json_decref|pthread_mutex_\w+)\(")


def blank(text, start, end):
    return text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]


def end_of_call(code, at):
    """Behind the parenthesis that closes the one at `at`."""
    depth = 0
    for i in range(at, len(code)):
        depth += {"(": 1, ")": -1}.get(code[i], 0)
        if depth == 0:
            return i + 1
    return len(code)


def code_of(text):
    """The text, with blanks for what is no code, or none that the tests run: comments, literals, preprocessor lines,
    messages, assertions, and what only a GPU's compiler sees."""
    code = NOT_CODE.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
    for match in MESSAGES.finditer(code):
        code = blank(code, match.start(), end_of_call(code, match.end() - 1))
    lines, hidden, continued = code.split("\n"), [], False
    for i, line in enumerate(lines):
        directive = continued or line.lstrip().startswith("#")
        word = line.strip() if directive and not continued else ""
        if re.match(r"#\s*(ifdef|ifndef|if)\b", word):
            simt = "CF_SIMT" in word
            no = simt and ("ifndef" in word or "!defined" in word) or "__CUDA_ARCH__" in word
            hidden.append((simt or "__CUDA_ARCH__" in word, no))
        elif re.match(r"#\s*else\b", word) and hidden:
            hidden[-1] = (hidden[-1][0], hidden[-1][0] and not hidden[-1][1])
        elif re.match(r"#\s*endif\b", word) and hidden:
            hidden.pop()
        continued = directive and line.endswith("\\")
        if directive or any(no for _, no in hidden):
            lines[i] = " " * len(line)
    return "\n".join(lines)


def changes_in(text):
    """(place, old text, new text, what it is) for everything that can be changed in a file."""
    code = code_of(text)
    for match in OPERATOR.finditer(code):
        for new in OPERATORS[match.group(1)]:
            yield match.start(1), match.group(1), new, "operator"
    for match in NUMBER.finditer(code):
        number = int(match.group(1))
        yield match.start(1), match.group(1), str(number + 1), "number"
        if number > 0:
            yield match.start(1), match.group(1), str(number - 1), "number"
    for match in SIGN.finditer(code):
        yield match.start(1), "-", "", "sign"
    for match in NOT.finditer(code):
        yield match.start(1), "!", "", "not"
    for match in STEP.finditer(code):
        if code[max(0, match.start() - 2):match.start()] != "; ":  # of a loop: most never end
            yield match.start(1), match.group(1), {"++": "--", "--": "++"}[match.group(1)], "step"
    for match in STATEMENT.finditer(code):
        if not GIVES_BACK.match(match.group(2)) and match.group(2).count("(") == match.group(2).count(")"):
            yield match.start(2), text[match.start(2):match.end(2)], ";", "statement"


def mechanical(files):
    """Every mechanical mutant of the files {path: text}, by id. An id is made of the lines around the change, so it
    stays while these do, wherever the file is."""
    found = {}
    for path, text in sorted(files.items()):
        for at, old, new, kind in changes_in(text):
            start = text.rfind("\n", 0, text.rfind("\n", 0, at) if "\n" in text[:at] else 0) + 1
            end = text.find("\n", text.find("\n", at + len(old)) + 1)
            around = text[start:at] + "\0" + new + "\0" + text[at + len(old):end]
            name = hashlib.sha1(around.encode()).hexdigest()[:8]
            unique, n = name, 1
            while unique in found:
                n += 1
                unique = f"{name}-{n}"
            found[unique] = Mutant(unique, path, at, old, new, kind)
    return found


def sources():
    paths = sorted(p for p in (ROOT / "src").rglob("*") if p.suffix in (".c", ".inc", ".cuh"))
    return {p.relative_to(ROOT).as_posix(): p.read_text() for p in paths}


# ----------------------------------------------------------------------------------------------------------- self-test

def self_check():
    """The errors of the lists, or of this program."""
    hand = read_hand(HAND.read_text(), lambda path: (ROOT / path).read_text())
    read_equivalent(EQUIVALENT.read_text())
    if len(hand) < 25:
        yield f"tests/mutants/hand.txt has {len(hand)} mutants; it must have at least 25"
    expected = [
        ("int f(void) {\n    return a + 1;\n}\n", {("+", "-"), ("1", "2"), ("1", "0")}),
        ("/* a + 1 */ const char *a = \"b + 1\"; // 1\n", set()),
        ("#define A 1\n#define B(x) \\\n    (x + 1)\n", set()),
        ("    cf_fail(A, \"x\", (a + 1) * 2);\n    static_assert(a < 3, \"\");\n", set()),
        ("#ifndef CF_SIMT\na + b;\n#else\na - b;\n#endif\na * b;\n", {("-", "+"), ("*", "+")}),
        ("#ifdef CF_SIMT\na + b;\n#else\na - b;\n#endif\n", {("+", "-")}),
        ("x = f(-y, !z);\n", {("-", ""), ("!", "")}),
        ("{\n    f(x);\n    free(x);\n    int y = x;\n    return y;\n}\n", {("f(x);", ";")}),
        ("{\n    if (x)\n        y = z;\n}\n", {("y = z;", ";")}),
        ("a <= b;\n", {("<=", "<")}),
        ("double x = 1.5 + 0x1p-3f;\n", {("+", "-")}),
    ]
    for text, wanted in expected:
        found = {(old, new) for _, old, new, _ in changes_in(text)}
        if found != wanted:
            yield f"expected {sorted(wanted)}, found {sorted(found)} in\n{text}"
    texts = {"a.c": "int a;\n    return a + b;\nint b;\n"}
    moved = {"b.c": "int c;\n" + texts["a.c"]}
    if sorted(mechanical(texts)) != sorted(mechanical(moved)):
        yield "the ids of mechanical mutants change with the name of the file, or with lines that are far away"
    for bad, wanted in [("== a\nfile x\nbreaks y\nneeds z\n- none\n", "stands 0 times"),
                        ("== a\nfile x\nbreaks y\nneeds z\n- t\n", "stands 2 times"),
                        ("== a\nfile x\nneeds z\n- one\n", "no line 'breaks'"), ("what\n", "is neither of"),
                        ("== a\nfile x\nbreaks y\nneeds z\n- one\n" * 2, "is there twice")]:
        try:
            read_hand(bad, lambda path: "one t t")
            yield f"taken without complaint:\n{bad}"
        except Refused as refused:
            if wanted not in str(refused):
                yield f"expected '{wanted}' of\n{bad}\nand not: {refused}"
