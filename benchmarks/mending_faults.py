"""Forty seeded faults of one line each in a small package, their fixes, and tests of every kind that an agent may hand in.

A fault is one function that is wrong. `files` gives what a change to the repository would write: the fix, and a test of a kind.
Only a `true` test proves anything; every other must be refused with its own class.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

RUNNER = Path(__file__).with_name("mending_runner.py")


@dataclass(frozen=True)
class Fault:
    """A function as it is, as it should be, and a call that shows the difference."""

    name: str
    arguments: str
    wrong: str
    right: str
    call: str
    value: str

    @property
    def said(self) -> str:
        """The text of a report of it."""
        return f"{self.name}({self.call}) gives the wrong answer, it should be {self.value}"


def _fault(row: str) -> Fault:
    name, arguments, wrong, right, call, value = (part.strip() for part in row.split(" | "))
    return Fault(name, arguments, wrong, right, call, value)


_ROWS = """
clamp_low | a, low | min(a, low) | max(a, low) | 1, 3 | 3
clamp_high | a, high | max(a, high) | min(a, high) | 9, 5 | 5
middle | items | items[len(items) // 2 - 1] | items[len(items) // 2] | [1, 2, 3] | 2
last_item | items | items[0] | items[-1] | [1, 2, 3] | 3
all_but_first | items | items[:-1] | items[1:] | [1, 2, 3] | [2, 3]
average | items | sum(items) // 2 | sum(items) / len(items) | [1, 2, 3] | 2.0
is_even | n | n % 2 == 1 | n % 2 == 0 | 4 | True
is_leap | year | year % 4 == 0 | year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) | 1900 | False
square_of | n | n * 2 | n * n | 5 | 25
cube_of | n | n * n | n * n * n | 3 | 27
factorial | n | 0 if n < 2 else n * factorial(n - 1) | 1 if n < 2 else n * factorial(n - 1) | 4 | 24
fibonacci | n | n if n < 2 else fibonacci(n - 1) + fibonacci(n - 1) | n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2) | 6 | 8
gcd_of | a, b | a if b == 0 else gcd_of(b, a // b) | a if b == 0 else gcd_of(b, a % b) | 12, 18 | 6
reverse_text | text | text[::1] | text[::-1] | "abc" | "cba"
is_palindrome | text | text == text | text == text[::-1] | "ab" | False
count_vowels | text | sum(c in "aeio" for c in text) | sum(c in "aeiou" for c in text) | "guru" | 2
title_case | text | text.upper() | text.title() | "one two" | "One Two"
first_word | text | text.split()[-1] | text.split()[0] | "one two" | "one"
word_count | text | len(text) | len(text.split()) | "one two" | 2
join_comma | items | ",".join(items) | ", ".join(items) | ["a", "b"] | "a, b"
strip_zeros | text | text.strip("0") | text.lstrip("0") | "0050" | "50"
has_digit | text | text.isdigit() | any(c.isdigit() for c in text) | "a1" | True
to_celsius | f | (f - 32) * 9 / 5 | (f - 32) * 5 / 9 | 212 | 100.0
to_minutes | hours | hours * 6 | hours * 60 | 2 | 120
percent_of | part, whole | part / whole | 100 * part / whole | 1, 4 | 25.0
add_tax | price, rate | price + rate | price + price * rate // 100 | 200, 10 | 220
discounted | price, rate | price - rate | price - price * rate // 100 | 200, 10 | 180
largest | items | min(items) | max(items) | [3, 9, 4] | 9
smallest | items | items[0] | min(items) | [3, 9, 1] | 1
unique | items | list(items) | sorted(set(items)) | [2, 1, 2] | [1, 2]
flatten | rows | [rows[0]] | [item for row in rows for item in row] | [[1], [2]] | [1, 2]
pairs | items | list(zip(items, items)) | list(zip(items, items[1:])) | [1, 2, 3] | [(1, 2), (2, 3)]
doubled | items | items + items | [2 * item for item in items] | [1, 2] | [2, 4]
index_of | items, item | -1 | items.index(item) if item in items else -1 | [4, 7], 7 | 1
without | items, item | items | [one for one in items if one != item] | [1, 2], 2 | [1]
merged | a, b | {**b, **a} | {**a, **b} | {"x": 1}, {"x": 2} | {"x": 2}
inverted | mapping | mapping | {value: key for key, value in mapping.items()} | {"a": 1} | {1: "a"}
every_other | items | items[1::2] | items[::2] | [1, 2, 3] | [1, 3]
rounded_up | a, b | a // b | -(-a // b) | 7, 2 | 4
sign_of | n | 1 if n > 0 else -1 | (n > 0) - (n < 0) | 0 | 0
"""
FAULTS = tuple(_fault(row) for row in _ROWS.strip().splitlines())
KINDS = ("true", "vacuous", "marker", "import-error", "collection-error", "syntax-error", "flaky", "misdirected")
_MODULES = ("numbers_", "lists", "words", "tables")
TRANSIENT = "def nothing_wrong(a):\n    return a + 1\n"


def module_of(fault: Fault) -> str:
    return _MODULES[FAULTS.index(fault) % len(_MODULES)]


def module(name: str, fixed: Fault | None = None) -> str:
    """Write one module of the package, with one of its faults mended."""
    own = [one for one in FAULTS if module_of(one) == name]
    parts = [f"def {one.name}({one.arguments}):\n    return {one.right if one is fixed else one.wrong}\n" for one in own]
    return "\n\n".join((TRANSIENT, *parts))


def settings(more: str = "") -> str:
    """Write settings: how tests are run, and other keys."""
    command = json.dumps([sys.executable, "-B", str(RUNNER), "{report}"])
    return f'{more}\n[[checks]]\nname = "tests"\ncommand = {command}\nreport = "junit"\nminutes = 0.5\n'


def package(more: str = "") -> dict[str, str]:
    """Give the files of the repository with every fault in it; its own tests are green."""
    tests = "from shop import lists\n\n\ndef test_nothing_wrong():\n    assert lists.nothing_wrong(1) == 2\n"
    modules = {f"shop/{name}.py": module(name) for name in _MODULES}
    documents = {"AGENTS.md": "Be brief.\n", "decklog.toml": settings(more)}
    return {**modules, "shop/__init__.py": "", "tests/test_base.py": tests, **documents}


def files(fault: Fault, kind: str, counter: Path) -> Mapping[str, str]:
    """Give what a change writes that mends a fault and brings a test of a kind; `counter` makes a flaky one alternate."""
    name, call, value = fault.name, fault.call, fault.value
    home = module_of(fault)
    head = f"def test_{name}():\n    "
    true = f"from shop import {home}\n\n\n{head}assert {home}.{name}({call}) == {value}\n"
    tests = {
        "true": true,
        "vacuous": f"from shop import {home}\n\n\ndef test_{name}():\n    assert {home}.{name}({call}) is not ...\n",
        "marker": f'import os\n\n\ndef test_{name}():\n    assert os.path.exists("mended-{name}.txt")\n',
        "import-error": f"from shop.{home} import {name}, mended_{name}\n\n\n{head}assert {name}({call}) == {value}\n",
        "collection-error": f'import os\n\nif not os.path.exists("mended-{name}.txt"):\n    raise ValueError("no")\n{true}',
        "syntax-error": true.replace("assert", "assert ("),
        "flaky": (
            f"from pathlib import Path\n\nfrom shop import {home}\n\n\ndef test_{name}():\n    path = Path({str(counter)!r})\n"
            "    count = len(path.read_text()) if path.exists() else 0\n    path.write_text('x' * (count + 1))\n"
            f"    assert count % 2 or {home}.{name}({call}) == {value}\n"
        ),
        "misdirected": f"from shop import {home}\n\n\ndef test_{name}():\n    assert {home}.nothing_wrong(4) == 5\n",
    }
    fix = module(home, fault) + (f"\n\nmended_{name} = True\n" if kind == "import-error" else "")
    marks = {f"mended-{name}.txt": "yes\n"} if kind in ("marker", "collection-error") else {}
    return {f"shop/{home}.py": fix, f"tests/test_{name}.py": tests[kind], **marks}
