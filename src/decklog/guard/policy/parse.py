"""Parsing of bash text, and a rough split of text that does not parse."""

import re
from fnmatch import fnmatchcase
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import TYPE_CHECKING, Any

from decklog.core.errors import Unavailable
from decklog.guard.policy.words import (
    NO_TAINT,
    SPLIT,
    UNKNOWN,
    Word,
    decode_ansi,
    finish,
    join_taint,
    seal,
    unescape,
    unescape_quoted,
    unseal,
)

if TYPE_CHECKING:
    from decklog.guard.policy.script import Reader

Node = Any
"""A tree-sitter node."""

LONGEST = 64 * 1024
DEEPEST = 48
MOST_STEPS = 20_000
MOST_OPERATORS = 1_000
_HEREDOC = r"<<-?[ \t]*['\"\\]?(\w+)"
_QUOTED = r"""(?s)'[^']*'|"(?:[^"\\]|\\.)*["]"""
_OPERATORS = r"[|&;()<>`{}\n$'\"]"
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
    return len(re.findall(_OPERATORS, re.sub(_QUOTED, "", _without_heredocs(text)))) > MOST_OPERATORS


def _without_heredocs(text: str) -> str:
    """Leave out the bodies of here-documents that come to their end."""
    kept: list[str] = []
    body: list[str] = []
    ending = None
    for line in text.split("\n"):
        if ending is None:
            kept.append(line)
            found = re.search(_HEREDOC, line)
            ending = found[1] if found else None
        elif line.strip() == ending:
            ending, body = None, []
        else:
            body.append(line)
    return "\n".join(kept + body)


_BRACED = r"(?s)\$\{([#!]?)(\w+|[@*?$!#-])(\[[^\]]*\])?(.*)\}"
_REPLACED = r"(//?)([^/*?\[\]$`\\#%]+)(?:/([^$`\\]*))?"
_SUBSTRING = r":\s*(\d{1,5})(?::(\d{1,5}))?"
_BACKTICKS = r"`([^`]+)`"
_HIDDEN = r"\$\(([^()]*(?:\([^()]*\)[^()]*)*)\)"
_CUT = r"(%%?|##?)([^$`\\]*)"
_NAMED = r"\$(?:(\w+)|\{(\w+)\})"
_QUOTES = r"['\"\\`(){}](?<!\$\{)(?<!\w\})"
_LITERAL = {"word", "number", "variable_name", "special_variable_name", "brace_expression", "extglob_pattern", "regex"}


class Expander:
    """Expand a word of a script; the reader judges the commands inside it."""

    def __init__(self, reader: "Reader") -> None:
        self.reader = reader
        self.scope = reader.scope
        self.taint = NO_TAINT
        self.content: str | None = None

    def fields(self, node: Node) -> list[Word]:
        """Return the arguments a word expands to."""
        return finish(self._raw(node, False), self.taint, self.content)

    def joined(self, text: str) -> list[Word]:
        """Return the arguments of a word that the grammar split at a `$`; unknown if it is quoted."""
        if re.search(_QUOTES, text):
            return [Word(UNKNOWN)]
        return finish(re.sub(_NAMED, lambda found: self._insert(self.scope.value(found[1] or found[2]), False), text), self.taint)

    def single(self, node: Node) -> Word:
        """Return the text of a word that the shell does not split, as in assignments."""
        raw = self._raw(node, False)
        return Word(unseal(raw.replace(SPLIT, " ")), self.taint, self.content)

    def body(self, node: Node) -> Word:
        """Return the text of an unquoted here-document."""
        raw = self._between(node, node.start_byte, node.end_byte)
        return Word(unseal(raw.replace(SPLIT, " ")), self.taint)

    def _raw(self, node: Node, quoted: bool) -> str:
        """Expand one node to text with its quoted characters sealed."""
        kind, text = node.type, self.reader.text(node)
        if kind in _LITERAL:
            return seal(unescape_quoted(text)) if quoted else unescape(text)
        match kind:
            case "raw_string":
                return seal(text[1:-1])
            case "ansi_c_string":
                return seal(decode_ansi(text[2:-1]))
            case "string":
                return self._between(node, node.start_byte + 1, node.end_byte - 1)
            case "simple_expansion":
                return self._insert(self.scope.value(text[1:]), quoted)
            case "expansion":
                return self._braced(node, text, quoted)
            case "command_substitution" | "process_substitution":
                return self._substituted(node, quoted)
            case "arithmetic_expansion":
                self._visit(node)
                return UNKNOWN
            case "string_content" | "heredoc_content":
                return seal(unescape_quoted(text))
            case "array":
                return SPLIT.join(self._raw(child, quoted) for child in node.children if child.is_named)
            case "concatenation" | "translated_string" | "command_name" if node.children:
                return "".join(self._raw(child, quoted) for child in node.children if child.type != "$")
        self._visit(node)
        return unescape(text)

    def _between(self, node: Node, start: int, end: int) -> str:
        """Expand quoted text: its expansions, and the plain text between them."""
        parts, place = [], start
        for child in node.children:
            if child.type in ('"', "string_content", "heredoc_content") or child.start_byte < place:
                continue
            parts += [self._plain(place, child.start_byte), self._raw(child, True)]
            place = child.end_byte
        return "".join([*parts, self._plain(place, end)])

    def _plain(self, start: int, end: int) -> str:
        return seal(unescape_quoted(self.reader.source[start:end].decode("utf-8", "replace"))) if end > start else ""

    def _insert(self, word: Word, quoted: bool) -> str:
        """Insert a value: whole within quotes, split at white space outside."""
        self.taint |= word.taint
        if word.content is not None:
            self.content = word.content
        if quoted:
            return seal(word.text)
        separators = re.escape(self.scope.value("IFS").text)
        return re.sub(f"[{separators}]+", SPLIT, word.text) if separators else word.text

    def _substituted(self, node: Node, quoted: bool) -> str:
        """Expand a command or process substitution to its known output."""
        word = self.reader.in_subshell(node)
        if node.type == "process_substitution":
            self.taint |= word.taint
            self.content = word.text
            return "/dev/fd/63"
        return self._insert(Word(word.text.rstrip("\n"), word.taint), quoted)

    def _braced(self, node: Node, text: str, quoted: bool) -> str:
        """Expand `${name}` with the operators whose result is known."""
        self._visit(node)
        found = re.fullmatch(_BRACED, text)
        if not found or found[1] == "#":
            return UNKNOWN
        name, operator = found[2], found[4]
        # The grammar takes backticks in here for plain text.
        for hidden in re.findall(_BACKTICKS, operator):
            self.taint |= self.reader.run_script(hidden).taint
        if found[1] == "!":
            name = self.scope.value(name).text
            if UNKNOWN in name:
                return self._insert(Word(UNKNOWN, frozenset({"environment"})), quoted)
        word = self.scope.value(name)
        if operator:
            word = self._operated(word, operator)
        if operator.startswith((":=", "=")) and name.isidentifier():
            self.scope.assign(name, word)
        return self._insert(word, quoted and found[3] not in ("[@]", "[*]"))

    def _operated(self, word: Word, operator: str) -> Word:
        """Apply a default, an alternative, a replacement, a substring or a change of case."""
        if operator.startswith((":-", ":=", "-", "=")):
            default = operator.lstrip(":").lstrip("-=").strip("\"'")
            return word if word.text not in ("", UNKNOWN) else self._default(default, word)
        if operator.startswith((":+", "+")):
            return Word(operator.lstrip(":+").strip("\"'"))
        if operator.startswith((":?", "?")):
            return word
        if operator == "@P":
            # A prompt is expanded once more, with the commands in it.
            self._run_hidden(word.text)
            return Word(UNKNOWN, word.taint | self.taint)
        replaced = re.fullmatch(_REPLACED, operator)
        if replaced and word.is_known:
            old, new = (part.strip("\"'") for part in (replaced[2], replaced[3] or ""))
            return Word(word.text.replace(old, new, -1 if replaced[1] == "//" else 1), word.taint)
        return Word(_transformed(word.text, operator) if word.is_known else UNKNOWN, word.taint)

    def _default(self, default: str, word: Word) -> Word:
        """Return the value of `${name:-default}` for a name the script does not set."""
        if "`" in default or "$(" in default:
            return Word(UNKNOWN, word.taint)
        names = [found[1] or found[2] for found in re.finditer(_NAMED, default)]
        text = re.sub(_NAMED, lambda found: self.scope.value(found[1] or found[2]).text, default)
        return Word(UNKNOWN if "$" in text else text, word.taint | join_taint([self.scope.value(name) for name in names]))

    def _visit(self, node: Node) -> None:
        """Judge the commands substituted anywhere below a node."""
        waiting = list(node.children)
        while waiting:
            child = waiting.pop()
            if child.type in ("command_substitution", "process_substitution"):
                self.taint |= self.reader.in_subshell(child).taint
            elif child.children:
                waiting.extend(child.children)
            else:
                self._run_hidden(self.reader.text(child))

    def _run_hidden(self, text: str) -> None:
        """Judge commands that the grammar took for plain text within an expansion."""
        for found in re.finditer(_HIDDEN, text):
            self.taint |= self.reader.run_script(found[1]).taint


def _transformed(text: str, operator: str) -> str:
    """Return a known value with its case changed, its ends cut, or a part of it."""
    if text.startswith("~"):
        return UNKNOWN
    if operator in ("^^", ",,", "@Q", "@E"):
        return text.upper() if operator == "^^" else text.lower() if operator == ",," else text
    trimmed, cut = re.fullmatch(_CUT, operator), re.fullmatch(_SUBSTRING, operator)
    if trimmed and text in (".", ".."):
        # The name of the current directory is not known.
        return f"{text}/.." if operator == "%/*" else UNKNOWN
    if trimmed:
        return _trim(text, trimmed[1], trimmed[2].strip("\"'"))
    return text[int(cut[1]) :][: int(cut[2]) if cut[2] else None] if cut else UNKNOWN


def _trim(text: str, operator: str, pattern: str) -> str:
    """Cut what a pattern matches off the end (`%`) or the start (`#`); a doubled operator cuts the longest match."""
    lengths = range(len(text) + 1) if len(operator) == 1 else range(len(text), -1, -1)
    at_end = operator[0] == "%"
    for length in lengths:
        cut = len(text) - length if at_end else length
        if fnmatchcase(text[cut:] if at_end else text[:cut], pattern):
            return text[:cut] if at_end else text[cut:]
    return text
