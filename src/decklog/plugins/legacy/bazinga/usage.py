"""Parse a command's words by its usage line, and format its reply."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from decklog.plugins.legacy.bazinga.base import CallRefused, from_json_text

NOTHING = object()


@dataclass
class ProgramReply:
    """An answer. `message` is dropped by --quiet; a value with `success: false` is a failure."""

    value: Any = NOTHING
    message: str | None = None
    text: str | None = None
    line: bool = False
    code: int = 0

    @property
    def exit_code(self) -> int:
        failed = isinstance(self.value, dict) and self.value.get("success") is False
        return 1 if failed else self.code

    def shown(self, *, quiet: bool) -> str:
        """Format the answer for standard output."""
        parts = []
        if self.message and not quiet and not self.exit_code:
            parts.append(f"\u2713 {self.message}")
        if self.text is not None:
            parts.append(self.text)
        if self.value is not NOTHING and not (quiet and self.line):
            parts.append(json.dumps(self.value, indent=None if self.line else 2))
        return "".join(part + "\n" for part in parts)


_PARTS = re.compile(r"\[[^\]]*\]|\S+")
# Text that only begins with dashes, such as a Markdown rule, is no flag.
_FLAG = re.compile(r"--[A-Za-z][\w-]*(=.*)?", re.DOTALL)


class Misuse(CallRefused):
    """The command line is wrong."""


class CommandUsage:
    """The parameters of a command, parsed from its usage line.

    `NAME` is a required word, `[NAME]` an optional one, `NAME...` takes the rest; `[--flag VALUE]` and `[--switch]` are
    flags, `|` separates aliases, and a `*` after a name makes the dashes optional.
    """

    def __init__(self, line: str) -> None:
        self.line = line
        self.required: list[str] = []
        self.optional: list[str] = []
        self.takes_rest = False
        self.flags: dict[str, str] = {}
        self.switches: set[str] = set()
        self.bare: set[str] = set()
        for part in _PARTS.findall(line):
            self._read(part)

    def _read(self, part: str) -> None:
        inner = part.strip("[]")
        if inner.startswith("-"):
            self._read_flag(inner)
        elif inner.endswith("..."):
            self.takes_rest = True
            self.required.append(inner[:-3].lower())
        elif part.startswith("["):
            self.optional.append(inner.lower())
        else:
            self.required.append(inner.lower())

    def _read_flag(self, inner: str) -> None:
        names, _, value = inner.partition(" ")
        spelled = [name.lstrip("-") for name in names.split("|")]
        first = spelled[0].rstrip("*")
        for name in spelled:
            self.flags[name.rstrip("*")] = first
            if name.endswith("*"):
                self.bare.add(first)
        if not value:
            self.switches.add(first)

    def shown(self) -> str:
        return self.line.replace("*", "")


class UsageValues:
    """The words of one call: positional ones by name, flags by name."""

    def __init__(self, usage: CommandUsage, words: list[str]) -> None:
        self._usage = usage
        self.words: list[str] = []
        self.flags: dict[str, str] = {}
        rest = iter(words)
        for word in rest:
            self._take(word, rest)
        self._check()
        names = [*usage.required, *usage.optional]
        self.named = dict(zip(names, self.words, strict=False))
        self.known = frozenset([*names, *usage.flags])

    def _take(self, word: str, rest: Iterator[str]) -> None:
        if word == "--" and not self._usage.takes_rest:
            self.words += rest
        elif self._usage.takes_rest or not self._is_flag(word):
            self.words.append(word)
        else:
            self._flag(word, rest)

    def _is_flag(self, word: str) -> bool:
        if word.startswith("--"):
            return _FLAG.fullmatch(word) is not None
        if len(word) == 2 and word[0] == "-":
            return word[1:] in self._usage.flags
        is_past = len(self.words) >= len(self._usage.required)
        return is_past and _plain(word) in self._usage.bare

    def _flag(self, word: str, rest: Iterator[str]) -> None:
        spelled, equals, value = word.partition("=")
        name = self._usage.flags.get(_plain(spelled))
        if name is None:
            known = ", ".join(f"--{flag}" for flag in self._usage.flags if len(flag) > 1) or "none"
            raise Misuse(f"Unknown flag: {spelled} (known: {known})")
        if name in self._usage.switches:
            if equals:
                raise Misuse(f"{spelled} takes no value")
            self.flags[name] = ""
            return
        if not equals:
            following = next(rest, None)
            if following is None or self._names_flag(following):
                raise Misuse(f"{spelled} requires a value")
            value = following
        self.flags[name] = value

    def _names_flag(self, word: str) -> bool:
        return word.startswith("--") and _plain(word.partition("=")[0]) in self._usage.flags

    def _check(self) -> None:
        usage = self._usage
        missing = usage.required[len(self.words) :]
        if missing:
            raise Misuse(f"Missing argument: {', '.join(name.upper() for name in missing)}")
        extra = self.words[len(usage.required) + len(usage.optional) :]
        if extra and not usage.takes_rest:
            raise Misuse(f"Unexpected argument: {extra[0]!r}")

    # Values, by name

    def __getitem__(self, name: str) -> str:
        return self.named[name]

    def get(self, name: str) -> str | None:
        """Return an optional word or a flag's value; None when it was not given."""
        return self.named.get(name, self.flags.get(name))

    def text(self, name: str, default: str) -> str:
        """Return an optional word or a flag's value; a blank one counts as given and does not become the default."""
        value = self.get(name)
        return default if value is None else value

    def has(self, switch: str) -> bool:
        return switch in self.flags

    def whole(self, name: str, *, low: int | None = None, high: int | None = None) -> int | None:
        """Return a word or a flag as a whole number."""
        text = self.get(name)
        return None if text is None else whole(name, text, low=low, high=high)

    def number(self, name: str) -> float | None:
        text = self.get(name)
        if text is None:
            return None
        try:
            return float(text)
        except ValueError:
            raise Misuse(f"{_to_parameter(name)} must be a number, got {text!r}") from None

    def json(self, name: str) -> Any:
        """Return a word or a flag as JSON."""
        text = self.get(name)
        return None if text is None else from_json_text(_to_parameter(name), text)

    def texts(self, name: str) -> list[str] | None:
        """Return a word or a flag as a JSON list of texts."""
        value = self.json(name)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise Misuse(f"{_to_parameter(name)} must be a JSON list of strings")
        return value

    def converted(self, name: str, kind: str, low: int | None, high: int | None, *, label: str) -> Any:
        """Return a word or a flag, converted to the type of an annotation; None when it was not given."""
        if self._usage.flags.get(name) in self._usage.switches:
            return True if self.has(name) else None
        if "bool" in kind:
            text = self.get(name)
            return None if text is None else text.strip().lower() in ("true", "1", "yes")
        if "list[str]" in kind:
            return self.texts(name)
        if "str" in kind and not kind.startswith("list"):
            return self.get(name)
        if "int" in kind and not kind.startswith("list"):
            text = self.get(name)
            return None if text is None else whole(label, text, low=low, high=high)
        return self.number(name) if "float" in kind else self.json(name)

    def file(self, name: str) -> str | None:
        """Return the text of the file that a flag names."""
        path = self.get(name)
        if path is None:
            return None
        try:
            with open(path, encoding="utf-8") as file:
                return file.read()
        except (OSError, UnicodeDecodeError) as problem:
            raise Misuse(f"{_to_parameter(name)} {path} can't be read: {problem}") from None


def whole(name: str, text: str, *, low: int | None = None, high: int | None = None) -> int:
    """Parse a whole number within bounds."""
    try:
        number = int(text)
    except ValueError:
        raise Misuse(f"{_to_parameter(name)} must be an integer, got {text!r}") from None
    if (low is not None and number < low) or (high is not None and number > high):
        bounds = f"from {low} to {high}" if high is not None else f"{low} or more"
        raise Misuse(f"{_to_parameter(name)} must be {bounds}, got {number}")
    return number


def _plain(word: str) -> str:
    return word.lstrip("-").replace("_", "-")


def _to_parameter(name: str) -> str:
    return name.replace("-", "_")
