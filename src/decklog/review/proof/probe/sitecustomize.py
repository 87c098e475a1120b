"""Watches tests in their own process: which lines they run, which files they read, and how they fail.

Python imports it at its start, in any version that a repository uses; without `DECKLOG_PROBE` it does nothing. It appends one
line of JSON for each call of a test, and one at the end for what ran outside of tests.
"""

import atexit
import json
import os
import sys
import threading
from types import FrameType
from typing import Any


class _Watch:
    """Traces the frames of one folder. What runs outside of tests, such as imports, is kept apart."""

    def __init__(self, wanted: dict[str, Any]) -> None:
        self._root = os.path.join(os.path.realpath(wanted["root"]), "")
        self._cwd = os.getcwd()
        self._tests = set(wanted["tests"])
        self._lines = {path: set(lines) for path, lines in wanted["lines"].items()}
        self._files = set(wanted["files"])
        self._out = os.path.join(wanted["out"], f"{os.getpid()}.jsonl")
        self._known: dict[str, str | None] = {}
        self._outside: dict[str, set[int]] = {}
        self._test: dict[str, Any] | None = None
        self._is_busy = False
        self._is_tracing = False

    def start(self) -> None:
        sys.addaudithook(self._on_event)
        atexit.register(self._end)

    def _trace(self) -> None:
        self._is_tracing = True
        threading.settrace(self._called)
        sys.settrace(self._called)

    def _relative(self, name: str) -> str | None:
        """Return the path of a file from the root; None for a file elsewhere."""
        if name not in self._known:
            path = os.path.realpath(os.path.join(self._cwd, name))
            inside = path.startswith(self._root) and not name.startswith("<")
            self._known[name] = path[len(self._root) :].replace(os.sep, "/") if inside else None
        return self._known[name]

    def _called(self, frame: FrameType, _event: str, _arg: Any) -> Any:
        code = frame.f_code
        path = self._known.get(code.co_filename, "")
        if path == "":
            path = self._relative(code.co_filename)
        if path is None:
            return None
        if path in self._tests:
            if self._test is None and code.co_name.startswith("test"):
                self._test = {
                    "test": code.co_name,
                    "file": path,
                    "lines": {},
                    "read": [],
                    "code": False,
                    "pending": None,
                    "at": {},
                }
                return self._in_test
            return self._in_code if self._test is not None else None
        if self._test is not None and code.co_name != "<module>":
            self._test["code"] = True
        return self._in_code if self._test is not None or path in self._lines else None

    def _in_code(self, frame: FrameType, event: str, arg: Any) -> Any:
        path = str(self._relative(frame.f_code.co_filename))
        if event == "line" and frame.f_lineno in self._lines.get(path, ()):
            is_outside = self._test is None or frame.f_code.co_name == "<module>"
            kept = self._outside if is_outside or self._test is None else self._test["lines"]
            kept.setdefault(path, set()).add(frame.f_lineno)
        elif event == "exception" and self._test is not None:
            # The first frame that an exception passes through is the one that it was raised in.
            self._test["at"].setdefault(id(arg[1]), (path, arg[1]))
        return self._in_code

    def _in_test(self, frame: FrameType, event: str, arg: Any) -> Any:
        test = self._test
        if test is None:
            return None
        if event == "exception":
            path = test["at"].setdefault(id(arg[1]), (test["file"], arg[1]))[0]
            test["pending"] = {"types": [one.__name__ for one in arg[0].__mro__], "in": path, "text": str(arg[1])[:300]}
        elif event == "line":
            # The test continues, so the exception was caught.
            test["pending"] = None
            self._in_code(frame, event, arg)
        elif event == "return":
            self._test = None
            self._write(test)
        return self._in_test

    def _on_event(self, event: str, args: tuple[Any, ...]) -> None:
        # Tracing starts with the first module of the folder: the imports of a test runner would take several times as long.
        if event == "exec" and not self._is_tracing and self._relative(getattr(args[0], "co_filename", "<")) is not None:
            self._trace()
        test = self._test
        if event == "open" and test is not None and not self._is_busy and isinstance(args[0], (str, bytes)):
            path = self._relative(os.fsdecode(args[0]))
            if path in self._files:
                test["read"].append(path)

    def _end(self) -> None:
        """Write what ran outside of tests."""
        if self._outside:
            self._write({"test": "", "file": "", "code": False, "read": [], "lines": {}, "pending": None})

    def _write(self, test: dict[str, Any]) -> None:
        row = {name: test[name] for name in ("test", "file", "code", "read")}
        row["raised"] = test["pending"]
        for name, lines in (("lines", test["lines"]), ("outside", self._outside)):
            row[name] = {path: sorted(found) for path, found in lines.items()}
        self._is_busy = True
        try:
            with open(self._out, "a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        finally:
            self._is_busy = False


def _begin() -> None:
    named = os.environ.get("DECKLOG_PROBE")
    if named:
        with open(named, encoding="utf-8") as file:
            wanted = json.load(file)
        _Watch(wanted).start()


_begin()
