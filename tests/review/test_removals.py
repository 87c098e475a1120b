"""Tests that go with the code that they tried, and tests that go without it: changes that were labelled by hand."""

import ast
import re
from collections.abc import Collection, Mapping

from decklog.conductor.checks.lost_tests import TestFile, moved, with_their_code, without
from decklog.conductor.checks.removed_code import gone
from tests.review import labelled_removals as labelled


def reported(files: Mapping[str, str | None]) -> dict[str, str]:
    """Name the tests of some files as a report of pytest does."""
    found = {}
    for path, text in files.items():
        module = ast.parse(text) if text and path.startswith("tests/") else ast.Module([], [])
        where = path.removesuffix(".py").replace("/", ".")
        for scope in (module, *(node for node in module.body if isinstance(node, ast.ClassDef))):
            within = f"{where}.{scope.name}" if isinstance(scope, ast.ClassDef) else where
            tests = [node for node in scope.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test")]
            found |= {f"{within}::{test.name}": "passed" for test in tests}
    return found


class Removal:
    """One labelled change; stands for the tree that it leads to."""

    def __init__(self, change: labelled.Files) -> None:
        self.after = {**labelled.BASE, **change}
        changed = [path for path, text in self.after.items() if text != labelled.BASE.get(path)]
        self.old = self._tests({path: labelled.BASE.get(path) for path in changed})
        new = self._tests({path: self.after[path] for path in changed})
        was, now = reported(labelled.BASE), reported(self.after)
        lost = sorted(set(was) - set(now))
        self.lost = sorted(set(lost) - moved(lost, was, now, self.old, new))
        code = [path for path in changed if not path.startswith("tests/")]
        before, after = ({path: (some.get(path) or "").encode() or None for path in code} for some in (labelled.BASE, self.after))
        self.gone = gone(before, after, self.words_of_code)
        self.let_go = with_their_code(self.lost, self.old, self.gone, self)

    @staticmethod
    def _tests(files: Mapping[str, str | None]) -> list[TestFile]:
        return [TestFile(path, text.encode()) for path, text in files.items() if text and path.startswith("tests/")]

    def words_of_code(self, words: Collection[str]) -> set[str]:
        texts = [text for path, text in self.after.items() if text and not path.startswith("tests/")]
        return {word for text in texts for word in re.findall(r"\w+", text)}.intersection(words)

    def tests_naming(self, words: Collection[str]) -> list[TestFile]:
        found = self._tests(self.after)
        return [file for file in found if set(words).intersection(re.findall(r"\w+", file.content.decode()))]


def test_tests_that_go_with_the_code_that_they_tried_are_no_loss() -> None:
    changes = {name: Removal(change) for name, change in (labelled.GOOD).items()}
    assert {name: set(one.lost) - one.let_go for name, one in changes.items() if set(one.lost) - one.let_go} == {}
    assert all(one.lost for one in changes.values())


def test_tests_of_code_that_stays_are_a_loss() -> None:
    changes = {name: Removal(change) for name, change in (labelled.BAD).items()}
    assert [name for name, one in changes.items() if set(one.lost) <= one.let_go] == []


def test_the_old_tests_are_left_as_they_were_but_for_those_that_went() -> None:
    change = Removal(labelled.GOOD["a class goes with its tests, its fixture and what set it up"])
    [file] = change.old
    left = without(file, change.let_go, change.gone)
    assert left is not None
    assert ast.dump(ast.parse(left)) == ast.dump(ast.parse(str(change.after[file.path])))
    assert without(file, (), gone({}, {}, lambda _: ())) == file.content
    whole = Removal(labelled.GOOD["a module goes with its tests in classes"])
    assert [without(one, whole.let_go, whole.gone) for one in whole.old] == [None]


def test_what_a_helper_asserts_of_code_that_stays_is_a_loss() -> None:
    test = "from shop import kept, left\n\n\ndef holds():\n    assert kept() == 1\n\n\n"
    test += "def test_both():\n    holds()\n    assert left() == 2\n"
    code = "def kept():\n    return 1\n\n\ndef left():\n    return 2\n"
    for text, is_let_go in ((test, False), (test.replace("    holds()\n", ""), True)):
        found = gone({"shop.py": code.encode()}, {"shop.py": code[: code.index("\n\ndef left")].encode()}, lambda _: ())
        tree = Removal({"tests/test_more.py": "from shop import kept\n\n\ndef test_kept():\n    assert kept()\n"})
        lost = ["tests.test_shop::test_both"]
        assert (with_their_code(lost, [TestFile("tests/test_shop.py", text.encode())], found, tree) == set(lost)) == is_let_go


def test_a_shared_fixture_of_what_is_gone_goes_with_its_tests() -> None:
    shared = b"import pytest\nfrom shop import left\n\n\n@pytest.fixture\ndef two():\n    return left()\n"
    code = b"def left():\n    return 2\n"
    files = [TestFile("tests/conftest.py", shared), TestFile("tests/test_shop.py", b"def test_two(two):\n    assert two == 2\n")]
    found, lost = gone({"shop.py": code}, {"shop.py": b""}, lambda _: ()), ["tests.test_shop::test_two"]
    assert with_their_code(lost, files, found, Removal({})) == set(lost)
    assert [without(file, lost, found) for file in files] == [b"import pytest\n", None]
