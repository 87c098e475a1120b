"""Expansion of a parsed word into the arguments the shell would pass on, as far as that can be known."""

import re
from collections.abc import Callable
from fnmatch import fnmatchcase

from decklog.guard.policy.shell.parse import Node, text_of
from decklog.guard.policy.shell.scope import Scope
from decklog.guard.policy.shell.words import (
    NO_TAINT,
    SPLIT,
    UNKNOWN,
    Word,
    decode_ansi,
    finish,
    seal,
    unescape,
    unescape_quoted,
    unseal,
)

_BRACED = re.compile(r"\$\{([#!]?)(\w+|[@*?$!#-])(\[[^\]]*\])?(.*)\}", re.DOTALL)
# A pattern without wildcards, and what takes its place.
_REPLACED = re.compile(r"(//?)([^/*?\[\]$`\\#%]+)(?:/([^$`\\]*))?")
_SUBSTRING = re.compile(r":\s*(\d{1,5})(?::(\d{1,5}))?")
_BACKTICKS = re.compile(r"`([^`]+)`")
_HIDDEN = re.compile(r"\$\(([^()]*(?:\([^()]*\)[^()]*)*)\)")
_CUT = re.compile(r"(%%?|##?)([^$`\\]*)")
_NAMED = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_INTRICATE = re.compile(r"['\"\\`(){}](?<!\$\{)(?<!\w\})")
_WHITE = re.compile(r"[ \t\n]+")
_WHOLE = {
    "word",
    "number",
    "variable_name",
    "special_variable_name",
    "brace_expression",
    "extglob_pattern",
    "regex",
}


class Expander:
    """Expand the words of one script, calling back for what stands in `$(...)`, backticks and `<(...)`."""

    def __init__(self, source: bytes, scope: Scope, substitute: Callable[[Node], Word], run: Callable[[str], Word]) -> None:
        self.source = source
        self.scope = scope
        self.substitute = substitute
        self.run = run
        self.taint: frozenset[str] = NO_TAINT
        self.content: str | None = None

    def fields(self, node: Node) -> list[Word]:
        """Give the arguments a word expands to: none, one or several."""
        self.taint, self.content = NO_TAINT, None
        return finish(self._raw(node, False), self.taint, self.content)

    def joined(self, text: str) -> list[Word]:
        """Give the arguments of a word that the grammar cut in two at a `$`; all of it is unknown if it is quoted."""
        self.taint, self.content = NO_TAINT, None
        if _INTRICATE.search(text):
            return [Word(UNKNOWN)]
        return finish(_NAMED.sub(lambda found: self._named(found[1] or found[2], False), text), self.taint)

    def single(self, node: Node) -> Word:
        """Give the one text a word stands for where the shell does not split it, as in assignments."""
        self.taint, self.content = NO_TAINT, None
        raw = self._raw(node, False)
        return Word(unseal(raw.replace(SPLIT, " ")), self.taint, self.content)

    def body(self, node: Node) -> Word:
        """Give the text of a here-document whose expansions happen."""
        self.taint, self.content = NO_TAINT, None
        raw = self._between(node, node.start_byte, node.end_byte)
        return Word(unseal(raw.replace(SPLIT, " ")), self.taint)

    def _raw(self, node: Node, quoted: bool) -> str:
        """Expand one node to text with its quoted characters sealed."""
        kind = node.type
        if kind in _WHOLE:
            text = text_of(node, self.source)
            return seal(unescape_quoted(text)) if quoted else unescape(text)
        match kind:
            case "raw_string":
                return seal(text_of(node, self.source)[1:-1])
            case "ansi_c_string":
                return seal(decode_ansi(text_of(node, self.source)[2:-1]))
            case "string":
                return self._between(node, node.start_byte + 1, node.end_byte - 1)
            case "simple_expansion":
                return self._named(text_of(node, self.source)[1:], quoted)
            case "expansion":
                return self._braced(node, quoted)
            case "command_substitution" | "process_substitution":
                return self._substituted(node, quoted)
            case "arithmetic_expansion":
                self._visit(node)
                return UNKNOWN
            case "string_content" | "heredoc_content":
                return seal(unescape_quoted(text_of(node, self.source)))
        if kind == "array":
            named = [child for child in node.children if child.is_named]
            return SPLIT.join(self._raw(child, quoted) for child in named)
        if not node.children:
            return unescape(text_of(node, self.source))
        if kind in ("concatenation", "translated_string", "command_name"):
            named = [child for child in node.children if child.type != "$"]
            return "".join(self._raw(child, quoted) for child in named)
        self._visit(node)
        return unescape(text_of(node, self.source))

    def _between(self, node: Node, start: int, end: int) -> str:
        """Expand quoted text: the children that are expansions, and the plain text between them."""
        parts, place = [], start
        for child in node.children:
            if child.type in ('"', "string_content", "heredoc_content") or child.start_byte < place:
                continue
            parts.append(self._plain(place, child.start_byte))
            parts.append(self._raw(child, True))
            place = child.end_byte
        parts.append(self._plain(place, end))
        return "".join(parts)

    def _plain(self, start: int, end: int) -> str:
        """Give the quoted text between two places of the source."""
        return seal(unescape_quoted(self.source[start:end].decode("utf-8", "replace"))) if end > start else ""

    def _insert(self, word: Word, quoted: bool) -> str:
        """Insert a value: whole within quotes, cut at white space outside."""
        self.taint |= word.taint
        if word.content is not None:
            self.content = word.content
        if quoted:
            return seal(word.text)
        if "IFS" in self.scope.variables:
            separators = self.scope.variables["IFS"][-1].text
            return "".join(SPLIT if char in separators else char for char in word.text)
        return _WHITE.sub(SPLIT, word.text)

    def _named(self, name: str, quoted: bool) -> str:
        """Expand `$name`."""
        return self._insert(self.scope.value(name), quoted)

    def _substituted(self, node: Node, quoted: bool) -> str:
        """Expand a command or process substitution to what its commands are known to print."""
        word = self.substitute(node)
        if node.type == "process_substitution":
            self.taint |= word.taint
            self.content = word.text
            return "/dev/fd/63"
        return self._insert(Word(word.text.rstrip("\n"), word.taint), quoted)

    def _braced(self, node: Node, quoted: bool) -> str:
        """Expand `${name}` with the operators whose result can be known."""
        self._visit(node)
        found = _BRACED.fullmatch(text_of(node, self.source))
        if not found or found[1] == "#":
            return UNKNOWN
        name, operator = found[2], found[4]
        # The grammar takes backticks in here for plain text.
        for quoted_command in _BACKTICKS.findall(operator):
            self.taint |= self.run(quoted_command).taint
        if found[1] == "!":
            name = self.scope.value(name).text
            if UNKNOWN in name:
                return self._insert(Word(UNKNOWN, frozenset({"environment"})), quoted)
        word = self.scope.value(name)
        if operator:
            word = self._operated(word, operator)
        if operator.startswith((":=", "=")) and name.isidentifier():
            self.scope.assign(name, word)
        is_list = (found[3] or "") in ("[@]", "[*]")
        return self._insert(word, quoted and not is_list)

    def _operated(self, word: Word, operator: str) -> Word:
        """Apply a default, an alternative, a substring or a change of case."""
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
        replaced = _REPLACED.fullmatch(operator)
        if replaced and word.is_known:
            old, new = (part.strip("\"'") for part in (replaced[2], replaced[3] or ""))
            return Word(word.text.replace(old, new, -1 if replaced[1] == "//" else 1), word.taint)
        if not word.is_known or word.text.startswith("~"):
            return Word(UNKNOWN, word.taint)
        if operator in ("^^", ",,", "@Q", "@E"):
            text = word.text.upper() if operator == "^^" else word.text
            return Word(text.lower() if operator == ",," else text, word.taint)
        trimmed = _CUT.fullmatch(operator)
        if trimmed and word.text in (".", ".."):
            # The name of the directory that the script stands in is not known.
            return Word(f"{word.text}/.." if operator == "%/*" else UNKNOWN, word.taint)
        if trimmed:
            return Word(_without_end(word.text, trimmed[1], trimmed[2].strip("\"'")), word.taint)
        cut = _SUBSTRING.fullmatch(operator)
        if cut:
            start = int(cut[1])
            return Word(word.text[start : start + int(cut[2])] if cut[2] else word.text[start:], word.taint)
        return Word(UNKNOWN, word.taint)

    def _default(self, default: str, word: Word) -> Word:
        """Give the value of `${name:-default}` for a name the script does not set."""
        if "`" in default or "$(" in default:
            return Word(UNKNOWN, word.taint)
        values = {name: self.scope.value(name) for name in (found[1] or found[2] for found in _NAMED.finditer(default))}
        text = _NAMED.sub(lambda found: values[found[1] or found[2]].text, default)
        return Word(UNKNOWN if "$" in text else text, word.taint.union(*(value.taint for value in values.values())))

    def _visit(self, node: Node) -> None:
        """Judge the commands substituted anywhere below a node whose own text is not needed."""
        waiting = list(node.children)
        while waiting:
            child = waiting.pop()
            if child.type in ("command_substitution", "process_substitution"):
                self.taint |= self.substitute(child).taint
            elif child.children:
                waiting.extend(child.children)
            else:
                self._run_hidden(text_of(child, self.source))

    def _run_hidden(self, text: str) -> None:
        """Judge a command that the grammar took for plain text within an expansion."""
        for found in _HIDDEN.finditer(text):
            self.taint |= self.run(found[1]).taint


def _without_end(text: str, operator: str, pattern: str) -> str:
    """Cut what a pattern matches off the end (`%`) or the beginning (`#`), the longest part if the sign stands twice."""
    lengths = range(len(text) + 1) if len(operator) == 1 else range(len(text), -1, -1)
    for length in lengths:
        part = text[len(text) - length :] if operator[0] == "%" else text[:length]
        if fnmatchcase(part, pattern):
            return text[: len(text) - length] if operator[0] == "%" else text[length:]
    return text
