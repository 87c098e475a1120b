"""Parsing of bash text, and a rough reading of text that does not parse."""

import re
from functools import cache
from typing import Any

from decklog.core.errors import Unavailable

Node = Any
"""A tree-sitter node; its types would make the parser a dependency of every import."""

LONGEST = 64 * 1024
DEEPEST = 48
MOST_NODES = 20_000

MOST_OPERATORS = 1_000
_HEREDOC = re.compile(r"<<-?[ \t]*['\"\\]?(\w+)")
_QUOTED = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*["]""", re.DOTALL)
_OPERATORS = re.compile(r"[|&;()<>`{}\n$'\"]")

_LETTERS = bytes(code if code < 0x80 else ord("x") for code in range(256))
_SEPARATORS = re.compile(r"[;&|\n()`]+")
_TOKENS = re.compile(r"""(?:[^\s'"\\<>]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+|[<>]""", re.DOTALL)


@cache
def _parser() -> Any:
    """Load the parser once, on the first command judged."""
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
    """Load the grammar without the package around it, which imports much for queries that are not needed here."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    package = PathFinder.find_spec("tree_sitter_bash")
    spec = package and PathFinder.find_spec("tree_sitter_bash._binding", package.submodule_search_locations)
    if spec is None or spec.loader is None:
        raise ImportError("tree_sitter_bash is not installed", name="tree_sitter_bash")
    grammar = module_from_spec(spec)
    spec.loader.exec_module(grammar)
    return grammar


def parse(source: bytes) -> Node:
    """Parse bash text and give the tree's root; its places are those of the text as it is."""
    # The grammar's scanner looks characters up in tables for single bytes and can crash on others. To the
    # shell they are letters like any other, so the parser sees a letter in their place.
    return _parser().parse(source.translate(_LETTERS)).root_node


def is_tangled(text: str) -> bool:
    """Tell whether text has so many operators outside quotes that parsing it could take long.

    The parser's recovery from errors takes time that grows with the square of what it has to recover.
    """
    if len(text) <= MOST_OPERATORS:
        return False
    bare = _QUOTED.sub("", _without_heredocs(text))
    return len(_OPERATORS.findall(bare)) > MOST_OPERATORS


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
    """Give a node's text as written."""
    return source[node.start_byte : node.end_byte].decode("utf-8", "replace")


def rough_commands(text: str) -> list[str]:
    """Cut text that does not parse at everything that could separate commands."""
    return [piece.strip() for piece in _SEPARATORS.split(text) if piece.strip()]


def rough_words(command: str) -> list[str]:
    """Cut a command into words with their quotes, whatever its grammar."""
    return _TOKENS.findall(command)
