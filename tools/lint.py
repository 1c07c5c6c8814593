#!/usr/bin/env python3
"""The lints that clang-format and clang-tidy do not know. Needs: Python's standard library, a git checkout.

Each lint is a function from a Tree (path -> text of the tracked files) to a list of "path:line: what is wrong". Adding one:
write the function, put it into LINTS with a pair of examples, of which the first must pass and the second must fail.

usage: lint.py [--self-test | --rules]
  --rules  prints the rules of the verifier, the makers and the script language: place and message, ".." for what varies
"""
import pathlib
import posixpath
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Top to bottom: a folder includes from itself and from those after it.
LAYERS = ["tools", "graph", "lang", "backends", "codegen", "ir", "runtime"]
SOURCE_LIMIT, HEADER_LIMIT, README_LIMIT = 800, 250, 40
# Headers that may be longer, each with the reason.
LONG_HEADERS = {}
# Headers that cost every user of a public header too much, or are not there where the package is installed.
HEAVY = re.compile(r"<(iostream|regex|fmt/|nlohmann/|Eigen/|llvm/|clang/|lld/|zip\.h|CLI/|sqlite3\.h|xxhash\.h|cuda)")
# What the runtime may use beside the standard library and the system.
NOT_IN_RUNTIME = re.compile(r"<(fmt/|Eigen/|llvm/|clang/|lld/|CLI/|sqlite3\.h)")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# Paths of the machine that a file was written on, and marks of unfinished work.
FOREIGN = re.compile(r"(?<![\w./$}-])/(home|root|work|Users)/\w")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX)\b|\bDISABLED_|\bGTEST_SKIP\(\)\s*;")
# Copied as they are from elsewhere: not ours to format or to judge.
VERBATIM = ("tests/acceptance/", "tests/models/", "tests/cases/", "LICENSE")


class Tree(dict):
    """path -> text; `sources` are the C and C++ files of ours."""

    def sources(self):
        return {p: t for p, t in self.items() if p.endswith((".cpp", ".h", ".inc", ".c")) and not p.startswith(VERBATIM)}


def read_tree():
    listing = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True)
    tree = Tree()
    for name in listing.stdout.decode().split("\0"):
        path = ROOT / name
        if not name or not path.is_file() or path.suffix in {".onnx", ".pb", ".npy", ".npz", ".png"}:
            continue
        tree[name] = path.read_text(encoding="utf-8", errors="replace")
    return tree


def layer_of(path):
    top = path.split("/")[0]
    return LAYERS.index(top) if top in LAYERS else None


def lint_layers(tree):
    """A folder includes only from itself and from the folders below it; private headers stay in their folder."""
    public = {}
    for path in tree:
        parts = path.split("/include/", 1)
        if len(parts) == 2 and layer_of(path) is not None:
            public[parts[1]] = layer_of(path)
    found = []
    for path, text in tree.sources().items():
        own = layer_of(path)
        if own is None:
            continue
        for number, line in enumerate(text.split("\n"), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            kind, name = match.groups()
            where = f"{path}:{number}"
            if name.startswith("hidet/"):
                target = public.get(name)
                if target is None:
                    found.append(f"{where}: <{name}> is no header in an include folder of a layer")
                elif target < own:
                    found.append(f"{where}: {LAYERS[own]} may not include <{name}> of {LAYERS[target]}, which is above it")
            elif kind == '"':
                folder = path.rsplit("/", 1)[0]
                near = [posixpath.normpath(f"{base}/{name}") for base in (folder, LAYERS[own])]
                inside = [n for n in near if n in tree]
                if any(layer_of(n) != own for n in inside) or (not inside and any(f"{l}/{name}" in tree for l in LAYERS)):
                    found.append(f'{where}: "{name}" is a private header of another folder')
    return found


def lint_heavy(tree):
    """Public headers are light; the runtime has no third-party library but its JSON reader and hash."""
    found = []
    for path, text in tree.sources().items():
        for number, line in enumerate(text.split("\n"), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            name = f"<{match.group(2)}"
            if "/include/" in path and HEAVY.match(name):
                found.append(f"{path}:{number}: {name}> in a public header; keep it in a .cpp file")
            if path.startswith("runtime/") and NOT_IN_RUNTIME.match(name):
                found.append(f"{path}:{number}: {name}> may not be used by the runtime")
    return found


def lint_size(tree):
    """Source files of at most 800 lines, headers of at most 250."""
    found = []
    for path, text in tree.sources().items():
        limit = HEADER_LIMIT if path.endswith(".h") else SOURCE_LIMIT
        lines = text.count("\n")
        if lines > limit and path not in LONG_HEADERS:
            found.append(f"{path}:{limit}: {lines} lines, {limit} at most; split it by idea or make a table of it")
    return found


def lint_readmes(tree):
    """Each top-level folder has a README.md of at most 40 lines."""
    found = []
    for top in sorted({p.split("/")[0] for p in tree if "/" in p and not p.startswith(".")}):
        text = tree.get(f"{top}/README.md")
        if text is None:
            found.append(f"{top}/README.md:1: missing (purpose, map, how to add one)")
        elif text.count("\n") > README_LIMIT:
            found.append(f"{top}/README.md:{README_LIMIT}: {text.count(chr(10))} lines, {README_LIMIT} at most")
    return found


def lint_words(tree):
    """No path of somebody's machine, no mark of unfinished work."""
    found = []
    for path, text in tree.items():
        if path.startswith(VERBATIM) or path == "tools/lint.py":
            continue
        for number, line in enumerate(text.split("\n"), 1):
            if FOREIGN.search(line):
                found.append(f"{path}:{number}: an absolute path of some machine: {line.strip()[:80]}")
            if UNFINISHED.search(line):
                found.append(f"{path}:{number}: unfinished work: {line.strip()[:80]}")
    return found


def blank_comments(text):
    """The text with comments, strings and characters blanked, positions and lines kept."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.S)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def skip_group(text, start):
    """The position after the group that opens at `start`."""
    depth = 0
    for at in range(start, len(text)):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at + 1
    return len(text)


def skip_statement(text, start):
    """The position after the statement at `start`: a block, a header with its statement, or up to a semicolon."""
    at = start
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        header = re.compile(r"(if|for|while|switch)\b\s*(constexpr\s*)?\(").match(text, at)
        if header:
            at = skip_statement(text, skip_group(text, header.end() - 1))
            if header.group(1) == "if":
                other = re.compile(r"\s*else\b").match(text, at)
                if other:
                    at = skip_statement(text, other.end())
            return at
        break
    while at < len(text):
        if text[at] in "([":
            at = skip_group(text, at)
        elif text[at] == "{":
            return skip_group(text, at)
        elif text[at] == ";":
            return at + 1
        else:
            at += 1
    return at


def lint_when(tree):
    """`else` after `if (auto _ = when(c))` runs while the script records and takes no part in it: `otherwise()` is meant."""
    found = []
    opening = re.compile(r"\bif\s*\(\s*(?:const\s+)?auto\s*&{0,2}\s*\w+\s*=\s*(?:\w+::)*(when|else_when|otherwise)\s*\(")
    for path, text in tree.sources().items():
        if "when" not in text:
            continue
        code = blank_comments(text)
        for match in opening.finditer(code):
            condition = code.index("(", match.start())
            after = skip_statement(code, skip_group(code, condition))
            if re.compile(r"\s*else\b").match(code, after):
                line = code.count("\n", 0, match.start()) + 1
                found.append(f"{path}:{line}: `else` after `{match.group(1)}(...)` is not recorded; write `if (auto _ = otherwise())`")
    return found


PASS = re.compile(r'(?:\b(?:stmt|function)_pass\(|\breturn \{)\s*"([a-z][a-z-]*)"')


def lint_golden(tree):
    """Every pass of ir/transforms has a golden file: tests/ir/golden/<pass>/*.hir."""
    tested = {p.split("/")[3] for p in tree if p.startswith("tests/ir/golden/") and p.endswith(".hir")}
    found = []
    for path, text in tree.sources().items():
        if not path.startswith("ir/transforms/"):
            continue
        for match in PASS.finditer(text):
            if match.group(1) not in tested:
                line = text.count("\n", 0, match.start()) + 1
                found.append(f"{path}:{line}: no golden file for the pass: tests/ir/golden/{match.group(1)}/*.hir")
    return found


# Where rules are stated, and what states one: the arguments before the message.
RULE_FILES = re.compile(r"^(ir/core/(verify\w*|call_rules|make)|lang/\w+)\.cpp$")
RULE = re.compile(r"\b(HIDET_REQUIRE|need|throw Error)\s*\(")
BEFORE_MESSAGE = {"HIDET_REQUIRE": 3, "need": 1, "throw Error": 1}
STRING = re.compile(r'"((?:\\.|[^"\\\n])*)"')


def split_arguments(code, start):
    """(begin, end) of each argument of the group that opens at `start`; strings in `code` are blank."""
    end, depth, begin, found = skip_group(code, start) - 1, 0, start + 1, []
    for at in range(start + 1, end):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(code[at], 0)
        if code[at] == "," and depth == 0:
            found.append((begin, at))
            begin = at + 1
    return found + [(begin, end)]


def literals(text, code, begin, end):
    """The strings between two positions, neighbours joined."""
    out, last = [], None
    for match in STRING.finditer(text, begin, end):
        if code[match.start()] != " " or code[match.end() : match.end() + 1] == "[":
            continue
        if last is not None and not code[last:match.start()].strip():
            out[-1] += match.group(1)
        else:
            out.append(match.group(1))
        last = match.end()
    return out


def said(statement, pieces):
    """Do the pieces of a message, each a list of choices, stand in the statement's strings in this order?"""
    at = 0
    for choices in pieces:
        ends = [statement.find(c, at) + len(c) for c in choices if statement.find(c, at) >= 0]
        if not ends:
            return False
        at = min(ends)
    return True


def rules(tree):
    """(place, pieces of the message) of every rule."""
    for path, text in sorted(tree.sources().items()):
        if not RULE_FILES.match(path):
            continue
        code = blank_comments(text)
        for match in RULE.finditer(code):
            pieces = []
            for begin, end in split_arguments(code, match.end() - 1)[BEFORE_MESSAGE[match.group(1)]:]:
                strings = literals(text, code, begin, end)
                if "?" in code[begin:end]:
                    pieces += [strings] if len(strings) > 1 else []
                else:
                    pieces += [[s] for s in strings]
            pieces = [p for p in pieces if p and "" not in p]
            line = text.count("\n", 0, match.start()) + 1
            if pieces:
                yield f"{path}:{line}", pieces


def message_of(pieces):
    return " .. ".join("|".join(p) for p in pieces)


def lint_rules(tree):
    """Every rule of the verifier, the makers and the script language has its message in a test."""
    statements = set()
    for path, text in tree.sources().items():
        if path.startswith(("tests/ir/", "tests/lang/", "tests/codegen/", "tests/backends/")):
            code, begin = blank_comments(text), 0
            for end in [m.start() for m in re.finditer(r";|\},\n", code)] + [len(code)]:
                statements.add("\0".join(literals(text, code, begin, end)))
                begin = end
    return [f"{place}: no test has this message: {message_of(pieces)}"
            for place, pieces in rules(tree) if not any(said(s, pieces) for s in statements)]


HEADER = "runtime/include/hidet/runtime/a.h"
SCRIPT = "graph/schedules/a.cpp"
# lint, a tree that is right, trees that are wrong
LINTS = [
    (lint_layers,
     {HEADER: "", "graph/a.cpp": '#include <hidet/runtime/a.h>\n#include "b.h"\n', "graph/b.h": ""},
     [{"graph/include/hidet/graph/g.h": "", "runtime/src/a.cpp": "#include <hidet/graph/g.h>\n"},
      {"ir/core/b.h": "", "graph/a.cpp": '#include "core/b.h"\n'},
      {"ir/core/b.h": "", "graph/a.cpp": '#include "../ir/core/b.h"\n'},
      {"graph/a.cpp": "#include <hidet/nowhere.h>\n"}]),
    (lint_heavy,
     {"ir/src/a.cpp": "#include <fmt/format.h>\n", HEADER: "#include <vector>\n"},
     [{HEADER: "#include <iostream>\n"}, {"runtime/src/a.cpp": "#include <fmt/format.h>\n"}]),
    (lint_size,
     {HEADER: "\n" * 250, "ir/a.cpp": "\n" * 800},
     [{HEADER: "\n" * 251}, {"ir/a.cpp": "\n" * 801}]),
    (lint_readmes,
     {"ir/README.md": "# ir\n", "ir/a.cpp": "", ".ci/run": "", "README.md": "\n" * 200},
     [{"ir/a.cpp": ""}, {"ir/README.md": "\n" * 41}]),
    (lint_words,
     {"a.cpp": "int x = 1 / home; // homework, /usr/local/cuda, build/work/x\n"},
     [{"a.cpp": "// " + "TO" + "DO: more\n"}, {"a.md": "cd /ho" + "me/me/project\n"}, {"t.cpp": "TEST(A, DISABLED_B) {}\n"}]),
    (lint_golden,
     {"ir/transforms/a.cpp": 'return stmt_pass("fold-all", f);\n', "tests/ir/golden/fold-all/a.hir": ""},
     [{"ir/transforms/a.cpp": 'return stmt_pass("fold-all", f);\n'},
      {"ir/transforms/a.cpp": 'return {"lower", [](const Module& m) {\n', "tests/ir/golden/other/a.hir": ""},
      {"ir/transforms/a.cpp": 'return function_pass(\n      "lower", f);\n', "tests/ir/golden/lower/a.txt": ""}]),
    (lint_rules,
     {"lang/a.cpp": 'HIDET_REQUIRE(n > 0, ErrorCode::usage, at.text(), "the step ", n, of ? " is" : " are", " small");\n',
      "tests/lang/a.cpp": 'EXPECT_EQ(f(), "the step 0 is" " small");\n'},
     [{"lang/a.cpp": 'HIDET_REQUIRE(n > 0, ErrorCode::usage, at.text(), "the step ", n);\n'},
      {"ir/core/verify.cpp": 'need(n > 0, "the step ", n);\n', "tests/ir/a.cpp": 'f("the pace 0");\n'}]),
    (lint_when,
     {SCRIPT: "if (auto _ = when(a)) { if (x) y; else z; }\nif (auto _ = otherwise()) b;\nif (p) q; else r;\n"
              "// if (auto _ = when(c)) a; else b;\nif (when) a; else b;\n"},
     [{SCRIPT: "if (auto _ = when(i < n)) a[i] = f(1);\nelse a[i] = 0;\n"},
      {SCRIPT: "if (auto _ = lang::when(i < n)) {\n  x;\n} else {\n  y;\n}\n"},
      {SCRIPT: "if (auto guard = else_when(c)) for (;;) { x; } else y;\n"},
      {SCRIPT: "if (auto _ = when(c)) if (d) x; else y; else z;\n"}]),
]


def self_test():
    failed = 0
    for lint, right, wrongs in LINTS:
        found = lint(Tree(right))
        if found:
            failed += 1
            print(f"{lint.__name__} complains about what is right: {found}")
        for wrong in wrongs:
            if not lint(Tree(wrong)):
                failed += 1
                print(f"{lint.__name__} does not see what is wrong in {wrong}")
    total = sum(1 + len(wrongs) for _, _, wrongs in LINTS)
    print(f"lint self-test: {total - failed} of {total} examples right")
    return 1 if failed else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if sys.argv[1:] == ["--rules"]:
        print("\n".join(f"{place}  {message_of(pieces)}" for place, pieces in rules(read_tree())))
        return 0
    if sys.argv[1:]:
        print(__doc__, file=sys.stderr)
        return 2
    tree = read_tree()
    for path, reason in LONG_HEADERS.items():
        print(f"note: {path} may be longer than {HEADER_LIMIT} lines: {reason}")
    found = [f"{message} [{lint.__name__[5:]}]" for lint, _, _ in LINTS for message in lint(tree)]
    for message in sorted(found):
        print(message)
    print(f"lint: {len(found)} found in {len(tree)} files by {len(LINTS)} lints")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
