"""Symbols are found by syntax, with what they belong to."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from decklog.core.errors import Denied, Invalid
from decklog.guard.files.root import Root
from decklog.guard.symbols import tree_sitter
from decklog.guard.symbols.symbols import find_symbol

PYTHON = '''
import os.path as osp
from .store import save as keep, load
from . import tools

def save(): ...

class Store:
    """save is only mentioned here."""
    def save(self):
        def save(): ...
        return save

    class Inner:
        async def save(self): ...

if True:
    class Late:
        save = 1
        @staticmethod
        def load(): ...
'''


def _found(root: Root, *args: str | None, **kwargs: str) -> list[tuple[str, str, int]]:
    found = find_symbol(root, *args, **kwargs).symbols  # type: ignore[arg-type]
    return [(one.kind, one.qualname, one.line_number) for one in found]


def test_methods_come_with_their_class_and_mentions_do_not_come_at_all(root: Root, here: Path) -> None:
    (here / "a.py").write_text(PYTHON)
    assert _found(root, "save") == [
        ("import", ".store.save", 3),
        ("function", "save", 6),
        ("method", "Store.save", 10),
        ("function", "Store.save.save", 11),
        ("method", "Store.Inner.save", 15),
    ]
    assert _found(root, "Store.save") == [("method", "Store.save", 10)]
    assert _found(root, "Late.load") == [("method", "Late.load", 21)]


def test_a_kind_narrows_the_search(root: Root, here: Path) -> None:
    (here / "a.py").write_text(PYTHON)
    assert _found(root, "save", "function") == [("function", "save", 6), ("function", "Store.save.save", 11)]
    assert _found(root, "Store", "class") == [("class", "Store", 8)]
    assert _found(root, "keep", "import") == [("import", ".store.save", 3)]
    assert _found(root, "osp", "import") == [("import", "os.path", 2)]
    assert _found(root, "os.path") == [("import", "os.path", 2)]
    assert _found(root, "tools") == [("import", ".tools", 4)]
    with pytest.raises(Invalid, match="not a kind"):
        find_symbol(root, "save", "variable")
    with pytest.raises(Invalid, match="empty"):
        find_symbol(root, " ")


def test_a_path_narrows_the_search_and_can_not_lead_out(root: Root, here: Path) -> None:
    for name in ("one", "two"):
        (here / name).mkdir()
        (here / name / "a.py").write_text("def save(): ...\n")
    assert [one.path for one in find_symbol(root, "save", path="two").symbols] == ["two/a.py"]
    with pytest.raises(Denied):
        find_symbol(root, "save", path="..")


def test_a_file_that_can_not_be_parsed_is_told_and_does_not_stop_the_search(root: Root, here: Path) -> None:
    (here / "bad.py").write_text("def save(:\n")
    (here / "deep.py").write_text("save = " + "(" * 5000 + ")" * 5000)
    (here / "escape.py").write_text("save = '\\d'\ndef save(): ...\n")
    found = find_symbol(root, "save")
    assert [one.path for one in found.symbols] == ["escape.py"]
    assert [one.path for one in found.skipped] == ["bad.py", "deep.py"]
    assert "not valid Python" in found.skipped[0].reason


SOURCES = {
    "a.js": (
        "import {save as keep} from 'x';\nclass A {\n save(){ }\n load = () => 1\n}\nconst save = () => 1;\n",
        {("import", "x", 1), ("method", "A.save", 3), ("function", "save", 6)},
    ),
    "a.ts": (
        "interface I { save(): void }\nnamespace N { function save(){} }\n",
        {("method", "I.save", 1), ("function", "N.save", 2)},
    ),
    "a.tsx": ("const save = () => <p/>;\n", {("function", "save", 1)}),
    "a.go": (
        "package p\n\nfunc (t *T[K]) save() {}\nfunc save() {}\ntype I interface{ save() }\n",
        {("method", "T.save", 3), ("function", "save", 4), ("method", "I.save", 5)},
    ),
    "a.rs": (
        "use a::save;\ntrait T { fn save(&self); }\nimpl<X> T for V<X> { fn save(&self){} }\nmod m { fn save(){} }\n",
        {("import", "a.save", 1), ("method", "T.save", 2), ("method", "V.save", 3), ("function", "m.save", 4)},
    ),
    "a.java": (
        "import a.save;\nclass A {\n void save(){}\n class save {}\n}\n",
        {("import", "a.save", 1), ("method", "A.save", 3), ("class", "A.save", 4)},
    ),
    "a.c": ('#include "save"\nchar *save(int a) { return 0; }\n', {("import", "save", 1), ("function", "save", 2)}),
    "a.cpp": (
        "namespace n { class A { void save(); }; }\nvoid n::A::save() {}\n",
        {("method", "n.A.save", 1), ("method", "n.A.save", 2)},
    ),
    "a.rb": (
        "require 'save'\nmodule M\n class A\n  def save; end\n  def self.save; end\n end\nend\ndef save; end\n",
        {("import", "save", 1), ("method", "M.A.save", 4), ("method", "M.A.save", 5), ("function", "save", 8)},
    ),
}


@pytest.mark.parametrize("name", SOURCES)
def test_other_languages_are_read_by_their_grammars(root: Root, here: Path, name: str) -> None:
    grammar = tree_sitter.BY_EXTENSION[Path(name).suffix]
    pytest.importorskip("tree_sitter", reason="tree-sitter is not installed")
    pytest.importorskip(grammar.package, reason=f"{grammar.package} is not installed")
    text, expected = SOURCES[name]
    (here / name).write_text(text)
    assert set(_found(root, "save")) == expected


@pytest.fixture
def no_grammars(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Hide the grammars, as on a machine where they are not installed."""
    for grammar in tree_sitter.GRAMMARS:
        monkeypatch.setitem(sys.modules, grammar.package, None)
    tree_sitter.parser_of.cache_clear()
    yield
    tree_sitter.parser_of.cache_clear()


@pytest.mark.usefixtures("no_grammars")
def test_without_a_grammar_the_result_says_what_was_not_looked_into(root: Root, here: Path) -> None:
    (here / "a.go").write_text("func save() {}\n")
    (here / "b.go").write_text("nothing of interest\n")
    found = find_symbol(root, "save")
    assert found.symbols == ()
    assert [one.reason for one in found.skipped] == ["1 go file with the name not looked into: tree-sitter-go is not installed"]
