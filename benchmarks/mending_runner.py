"""A test runner that starts in milliseconds and reports as pytest does, errors of collection too; it is called with the path of
its report, in the folder whose `tests/test_*.py` it runs. Run as a program of its own.
"""

import os
import sys
import traceback
from xml.sax.saxutils import escape, quoteattr


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
            text = escape(traceback.format_exc())
            cases.append(
                f'<testcase classname="" name={quoteattr(path)}><error message="collection failure">{text}</error></testcase>'
            )
            continue
        for test in [one for one in names if one.startswith("test_")]:
            inner = ""
            try:
                names[test]()  # type: ignore[operator]
            except Exception as problem:  # noqa: BLE001
                failed += 1
                told = f"{type(problem).__name__}: {problem}"
                inner = f"<failure message={quoteattr(told)}>{escape(traceback.format_exc())}</failure>"
            cases.append(f"<testcase classname={quoteattr(name)} name={quoteattr(test)}>{inner}</testcase>")
    with open(report, "w", encoding="utf-8") as file:
        file.write(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
    sys.exit(2 if uncollected else 1 if failed else 0)


if __name__ == "__main__":
    main()
