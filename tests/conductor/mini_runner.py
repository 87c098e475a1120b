"""A test runner that starts in milliseconds and reports as pytest does; it knows functions, `skip` and a file of options.

It is called with the path of its report. Run as a program of its own, in the folder whose `tests/test_*.py` it runs.
"""

import os
import sys

# As text between quotes of a report has them. What the standard library has for it takes longer to import than all tests to run.
_QUOTED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})


class Skip(Exception):
    """A test that is not to be run."""


def quoted(text: str) -> str:
    return f'"{text.translate(_QUOTED)}"'


def load(path: str) -> dict:  # type: ignore[type-arg]
    names: dict = {"__name__": os.path.basename(path)[:-3], "Skip": Skip}  # type: ignore[type-arg]
    with open(path, encoding="utf-8") as file:
        exec(compile(file.read(), path, "exec"), names)
    return names


def options() -> str:
    """Read which tests are to be run, as a file of settings may say."""
    if not os.path.exists("setup.cfg"):
        return ""
    with open("setup.cfg", encoding="utf-8") as file:
        return file.read().strip()


def main() -> None:
    report = sys.argv[1]
    sys.path.insert(0, os.getcwd())
    sys.dont_write_bytecode = True
    only = options()
    if os.path.exists("conftest.py"):
        load("conftest.py")
    cases, failed = [], 0
    for name in sorted(os.listdir("tests")):
        if not name.startswith("test_"):
            continue
        tests = load(os.path.join("tests", name))
        for test in [one for one in tests if one.startswith("test_") and only in one]:
            inner = ""
            try:
                tests[test]()
            except Skip:
                inner = "<skipped/>"
            except Exception as problem:  # noqa: BLE001
                inner, failed = f"<failure message={quoted(repr(problem))}/>", failed + 1
                print(f"FAILED {name}::{test}: {problem!r}")
            cases.append(f"<testcase classname={quoted(name)} name={quoted(test)}>{inner}</testcase>")
    with open(report, "w", encoding="utf-8") as file:
        file.write(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
