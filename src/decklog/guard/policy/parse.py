"""Parsing of bash text, and a rough split of text that does not parse."""

import re
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Any

from decklog.core.errors import Unavailable

Node = Any
"""A tree-sitter node."""

LONGEST = 64 * 1024
DEEPEST = 48
MOST_STEPS = 20_000
MOST_OPERATORS = 1_000
_HEREDOC = re.compile(r"<<-?[ \t]*['\"\\]?(\w+)")
_QUOTED = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*["]""", re.DOTALL)
_OPERATORS = re.compile(r"[|&;()<>`{}\n$'\"]")
_LETTERS = bytes(code if code < 0x80 else ord("x") for code in range(256))


class TooComplex(Exception):
    """The script is too long or too deeply nested to be judged."""


@cache
def _parser() -> Any:
    """Load the parser on first use."""
    try:
        import tree_sitter

        grammar = _grammar()
    except ImportError as error:
        raise Unavailable(
            "Judging shell commands needs tree-sitter-bash, which is not installed.",
            hint="Install Decklog anew: pip install --force-reinstall decklog",
        ) from error
    return tree_sitter.Parser(tree_sitter.Language(grammar.language()))


def _grammar() -> Any:
    """Load the grammar without its package, whose other imports take a quarter of a hook's time."""
    package = PathFinder.find_spec("tree_sitter_bash")
    spec = package and PathFinder.find_spec("tree_sitter_bash._binding", package.submodule_search_locations)
    if spec is None or spec.loader is None:
        raise ImportError("tree_sitter_bash is not installed", name="tree_sitter_bash")
    grammar = module_from_spec(spec)
    spec.loader.exec_module(grammar)
    return grammar


def parse(source: bytes) -> Node:
    """Parse bash text and return the root of the tree."""
    # The grammar's scanner can crash on bytes above 127. To the shell they are letters, so the parser gets a letter.
    return _parser().parse(source.translate(_LETTERS)).root_node


def is_tangled(text: str) -> bool:
    """Return whether a text has too many unquoted operators for the parser, whose error recovery is quadratic."""
    if len(text) <= MOST_OPERATORS:
        return False
    return len(_OPERATORS.findall(_QUOTED.sub("", _without_heredocs(text)))) > MOST_OPERATORS


def _without_heredocs(text: str) -> str:
    """Leave out the bodies of here-documents that come to their end."""
    kept: list[str] = []
    body: list[str] = []
    ending = None
    for line in text.split("\n"):
        if ending is None:
            kept.append(line)
            found = _HEREDOC.search(line)
            ending = found[1] if found else None
        elif line.strip() == ending:
            ending, body = None, []
        else:
            body.append(line)
    return "\n".join(kept + body)


def text_of(node: Node, source: bytes) -> str:
    """Return a node's text."""
    return source[node.start_byte : node.end_byte].decode("utf-8", "replace")
