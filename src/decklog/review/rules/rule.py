"""The form of a rule over text: what it finds, in which files, by which spellings, and what is said of it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from decklog.review.rules.source import Source

SCRIPTS = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".vue", ".svelte")
JVM = (".java", ".kt", ".kts", ".scala", ".groovy")
C = (".c", ".h", ".cc", ".cpp", ".cxx", ".hpp")
SHELLS = (".sh", ".bash", ".zsh", ".ksh", ".bats")
SETTINGS = (".yml", ".yaml", ".toml", ".json", ".jsonc", ".ini", ".cfg", ".conf", ".env", ".properties", ".xml", ".tf", ".hcl")
RECIPES = ("makefile", "gnumakefile", ".mk", "dockerfile", "containerfile", ".dockerfile", "jenkinsfile", "justfile")
_FLAGS = re.compile(r"^\(\?([ims]+)\)")


@dataclass(frozen=True)
class Told:
    """What is said of what a rule finds."""

    kind: str
    text: str
    remedy: str


@dataclass(frozen=True)
class Found:
    """Something that a rule found, with its line."""

    told: Told
    line: int


@dataclass(frozen=True)
class Rule:
    """One thing in its spellings. Without suffixes it is looked for in every file that is no prose."""

    told: Told
    suffixes: tuple[str, ...]
    pattern: re.Pattern[str]
    bare: bool = False

    def of(self, source: Source) -> Iterator[Found]:
        if not self.suffixes or source.suffix in self.suffixes or source.name.lower().startswith(self.suffixes):
            for line, _ in source.found(self.pattern, bare=self.bare):
                yield Found(self.told, line)


def rule(told: Told, suffixes: Sequence[str], *patterns: str, bare: bool = False, flags: int = 0) -> Rule:
    """Make a rule of several spellings; flags at the beginning of one are its own."""
    spelled = "|".join(_FLAGS.sub(r"(?\1:", one) + ")" if _FLAGS.match(one) else f"(?:{one})" for one in patterns)
    return Rule(told, tuple(suffixes), re.compile(spelled, re.MULTILINE | flags), bare)


def of_rules(rules: Sequence[Rule], source: Source) -> Iterator[Found]:
    """Apply rules to a file, each at most once a line."""
    if source.is_prose or not source.added:
        return
    seen: set[tuple[str, int]] = set()
    for one in rules:
        for found in one.of(source):
            if (found.told.kind, found.line) not in seen:
                seen.add((found.told.kind, found.line))
                yield found
