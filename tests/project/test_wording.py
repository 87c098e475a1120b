"""Documentation, docstrings and comments use plain words and short sentences."""

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from decklog.cli.main import menu
from tests.db.processes import ROOT
from tests.registry import commands

AVOIDED = (
    *("told", "tells", "says", "stands", "comes of", "becomes of", "whoever", "whatever", "so many", "beside", "by itself"),
    *("of its own", "no more than", "the least that", "is asked", "is held", "is taken up"),
)
_AVOIDED = re.compile(rf"\b(?:{'|'.join(AVOIDED)})\b", re.IGNORECASE)
_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
# Pages whose owners rewrite them; remove a page from here when it is done.
NOT_YET: set[str] = set()
_ALL = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
PAGES = sorted(path for path in _ALL if str(path.relative_to(ROOT)) not in NOT_YET)
TUTORIALS = sorted((ROOT / "docs").glob("tutorial*.md"))
_LONGEST_SENTENCE = 25
_AVERAGE_SENTENCE = 15
_MOST_WORDS = 60_000
README = ROOT / "README.md"
_MOST_WORDS_OF_README = 900
# The commands of the first minutes.
FIRST_COMMANDS = ("start", "init", "import claude", "import codex", "cost", "completion")
GENERATED = {"docs/cli.md", "docs/reference/python.md", "docs/reference/errors.md"}

MODULES = sorted((ROOT / "src/decklog").rglob("*.py"))


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def prose(path: Path) -> str:
    """Return the text of a page without code."""
    return _CODE.sub("x", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_page_has_no_word_of_the_avoid_list(page: Path) -> None:
    assert sorted({found[0].lower() for found in _AVOIDED.finditer(prose(page))}) == []


def explanations(module: str) -> Iterator[str]:
    """Yield the docstrings and comments of a module."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(module)):
        if isinstance(node, documented):
            yield ast.get_docstring(node) or ""
    for token in tokenize.generate_tokens(io.StringIO(module).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def found_in(texts_of: Callable[[str], Iterator[str]]) -> list[tuple[str, str]]:
    """Return the texts with a word of the list. Parse only modules that have such a word anywhere."""
    sources = [(name(path), path.read_text(encoding="utf-8")) for path in MODULES]
    suspects = [(where, source) for where, source in sources if _AVOIDED.search(source)]
    return [(where, text) for where, source in suspects for text in texts_of(source) if _AVOIDED.search(text)]


def test_docstrings_and_comments_have_no_word_of_the_avoid_list() -> None:
    assert [*explanations('"""Doc."""\n\nx = 1  # comment\n')] == ["Doc.", "# comment"]
    assert found_in(explanations) == []


def messages(module: str) -> Iterator[str]:
    """Yield the texts of a module that users read: strings of several words that are no docstrings."""
    tree = ast.parse(module)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, documented)]
    docstrings = {id(body[0].value) for body in bodies if body and isinstance(body[0], ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value and id(node) not in docstrings:
            yield node.value


def test_messages_have_no_word_of_the_avoid_list() -> None:
    assert [*messages('"""Doc string."""\nraise Invalid("two words")\n')] == ["two words"]
    assert found_in(messages) == []


@pytest.mark.parametrize("kind", ["css", "html", "js", "md", "sql", "toml"])
def test_data_and_templates_have_no_word_of_the_avoid_list(kind: str) -> None:
    paths = [path for path in (ROOT / "src/decklog").rglob(f"*.{kind}") if path.name != "words.toml"]
    assert paths
    assert [(name(path), found[0]) for path in paths for found in _AVOIDED.finditer(path.read_text(encoding="utf-8"))] == []


def sentences(text: str) -> list[str]:
    """Return the sentences of paragraphs and list items; tables and headings have none."""
    lines = [line.strip() for line in text.splitlines()]
    items = [re.sub(r"^(?:[-*]|\d+\.) ", "", line) for line in lines if line and not line.startswith(("|", "#", "!", "<", ">"))]
    return [part for line in items for part in re.split(r"(?<=[.!?:;])\s+", re.sub(r"\]\([^)]*\)", "]", line))]


@pytest.mark.parametrize("page", [page for page in PAGES if name(page) not in GENERATED], ids=name)
def test_no_sentence_is_longer_than_25_words(page: Path) -> None:
    long = [one for one in sentences(prose(page)) if len(one.split()) > _LONGEST_SENTENCE]
    assert long == []


@pytest.mark.parametrize("page", [README, *TUTORIALS], ids=name)
def test_sentences_of_a_tutorial_have_15_words_on_average(page: Path) -> None:
    lengths = [len(one.split()) for one in sentences(prose(page))]
    assert sum(lengths) / len(lengths) <= _AVERAGE_SENTENCE


def test_hand_written_documentation_stays_within_its_budget() -> None:
    pages = [path for path in (ROOT / "docs").rglob("*.md") if name(path) not in GENERATED]
    assert sum(len(path.read_text(encoding="utf-8").split()) for path in pages) <= _MOST_WORDS


def test_the_readme_has_at_most_900_words() -> None:
    assert len(README.read_text(encoding="utf-8").split()) <= _MOST_WORDS_OF_README


def test_the_help_of_the_first_commands_has_no_word_of_the_avoid_list() -> None:
    found = {path.removeprefix("decklog "): command for path, command, _ in commands()}
    texts = [menu.get_help(click.Context(menu, info_name="decklog"))]
    for path in FIRST_COMMANDS:
        options = [getattr(parameter, "help", None) or "" for parameter in found[path].params]
        texts += [found[path].help or "", *options]
    assert [text for text in texts if _AVOIDED.search(text)] == []


def test_avoided_words_are_found_at_word_boundaries_only() -> None:
    assert [found[0] for found in _AVOIDED.finditer("It tells besides that it stands. Standstill, beside `says`")] == [
        "tells",
        "stands",
        "beside",
        "says",
    ]
    assert _CODE.sub("x", "a `says`\n```\ntold\n```\nb") == "a x\nx\nb"
