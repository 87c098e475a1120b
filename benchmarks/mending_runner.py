"""A test runner that starts in milliseconds and reports as pytest does, errors of collection too; it is called with the path of
its report, in the folder whose `tests/test_*.py` it runs. Run as a separate program.

What the standard library has for writing XML takes longer to import than all tests to run; so does formatting an error, which
few need.
"""

import os
import sys

_ESCAPED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_QUOTED = _ESCAPED | str.maketrans({'"': "&quot;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})


def quoted(text: str) -> str:
    return f'"{text.translate(_QUOTED)}"'


def problem_text() -> str:
    """Tell the error that is being handled, with where it came from."""
    import traceback

    return traceback.format_exc().translate(_ESCAPED)


def main() -> None:
    report = sys.argv[1]
    sys.path.insert(0, os.getcwd())
    sys.dont_write_bytecode = True
    cases, failed, uncollected = [], 0, 0
    for name in sorted(one for one in os.listdir("tests") if one.startswith("test_")):
        path, names = os.path.join("tests", name), {"__name__": name[:-3]}
        try:
            with open(path, encoding="utf-8") as file:
                exec(compile(file.read(), path, "exec"), names)
        except Exception:  # noqa: BLE001
            uncollected += 1
            text = problem_text()
            cases.append(
                f'<testcase classname="" name={quoted(path)}><error message="collection failure">{text}</error></testcase>'
            )
            continue
        for test in [one for one in names if one.startswith("test_")]:
            inner = ""
            try:
                names[test]()  # type: ignore[operator]
            except Exception as problem:  # noqa: BLE001
                failed += 1
                message = f"{type(problem).__name__}: {problem}"
                inner = f"<failure message={quoted(message)}>{problem_text()}</failure>"
            cases.append(f"<testcase classname={quoted(name)} name={quoted(test)}>{inner}</testcase>")
    with open(report, "w", encoding="utf-8") as file:
        file.write(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
    sys.exit(2 if uncollected else 1 if failed else 0)


if __name__ == "__main__":
    main()
