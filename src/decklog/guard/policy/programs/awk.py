"""Judging of awk by its program: the files it reads and writes, the commands it runs, the variables it prints."""

import re

from decklog.guard.policy.programs.use import Judge, Use, script_texts
from decklog.guard.policy.shell.words import UNKNOWN, Word, decode_ansi

_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_REGEX = re.compile(r"(?<=[(,~!&|{;\n])\s*/(?:[^/\\\n]|\\.)+/|^\s*/(?:[^/\\\n]|\\.)+/")
_COMMENT = re.compile(r"#[^\n]*")
_GROUP = re.compile(r"\([^()]*\)")
_HELD = re.compile("\ue200(\\d+)\ue201")
_ALL_HELD = re.compile("(?:\\s*\ue200\\d+\ue201)+")
_PRINT = re.compile(r"\bprintf?\b([^;{}\n]*)")
_TARGET = re.compile(r"(>>?|\|&?)(.*)", re.DOTALL)
_GETLINE = re.compile(r"\bgetline\b\s*[\w$\[\]]*\s*<\s*([^;{})\n]*)")
_PIPED = re.compile(r"([^;{}\n|&]*)\|&?\s*getline")
_SYSTEM = re.compile(r"\bsystem\s*\(([^;{}\n]*)")
_ENVIRONMENT = re.compile(r"\bENVIRON\b\s*(?:\[\s*([^\]]*)\])?")
_LONGEST = 8_000


def check_awk(judge: Judge, use: Use) -> None:
    """Judge awk: the files it reads, and programs that run commands, read or write files."""
    operands = list(use.arguments.operands)
    programs = [word for option, word in use.arguments.values if option in ("-e", "--source")]
    if not programs and not use.arguments.has(("-f", "--file")):
        programs, operands = operands[:1], operands[1:]
    programs += script_texts(judge, use, "-f", "--file", "-E", "--exec")
    edits = any(option in ("-i", "--include") and word.text == "inplace" for option, word in use.arguments.values)
    for word in operands:
        if "=" not in word.text:
            judge.path("write" if edits else "read", word, use.scope, use.call.text)
    for program in programs:
        if len(program.text) > _LONGEST:
            judge.report("too-complex", use.call.text)
        _Program(judge, use, program.text[:_LONGEST]).check()


class _Program:
    """One awk program, its strings put aside so that operators are seen as such."""

    def __init__(self, judge: Judge, use: Use, text: str) -> None:
        self.judge, self.use = judge, use
        self.strings: list[str] = []
        self.is_unknown = UNKNOWN in text
        self.text = _COMMENT.sub("", _REGEX.sub(" 0 ", _STRING.sub(self._hold, text)))

    def _hold(self, found: re.Match[str]) -> str:
        self.strings.append(found[1])
        return f"\ue200{len(self.strings) - 1}\ue201"

    def check(self) -> None:
        """Judge everything that reaches outside of the program."""
        for found in _PRINT.finditer(self._without_groups()):
            target = _TARGET.search(found[1])
            if target is not None:
                self._target("write" if target[1].startswith(">") else "run", target[2])
        for found in _GETLINE.finditer(self.text):
            self._target("read", found[1])
        for pattern in (_PIPED, _SYSTEM):
            for found in pattern.finditer(self.text):
                self._target("run", found[1])
        for found in _ENVIRONMENT.finditer(self.text):
            self._variable(found[1])
        if self.is_unknown or re.search(r"@(load|include|namespace)\b|/inet", self.text + " ".join(self.strings)):
            self._ask()

    def _without_groups(self) -> str:
        """Leave out what stands in parentheses, where `>` compares."""
        text, before = self.text, ""
        while text != before:
            before, text = text, _GROUP.sub(" ", text)
        return text

    def _target(self, role: str, text: str) -> None:
        """Judge a file or a command: by its text if that is one string, else it is asked about."""
        text = text.strip().strip("()").strip()
        # A number names a file of this name, here.
        is_known = _ALL_HELD.fullmatch(text) is not None or text.isdigit()
        if not is_known or role == "run":
            self._ask()
        strings = [self.strings[int(number)] for number in _HELD.findall(text)]
        for joined in ["".join(strings)] if is_known else strings:
            word = Word(joined)
            if role == "run":
                self.judge.run_text("shell", word, self.use.scope, self.use.call)
            else:
                self.judge.path(role, word, self.use.scope, self.use.call.text)
            if role == "write":
                content = Word(decode_ansi("\n".join(self.strings)))
                self.judge.written(joined, content, self.use.scope, self.use.call)

    def _variable(self, name: str | None) -> None:
        """Judge a look at the environment: all of it, or one variable by its name."""
        held = _HELD.fullmatch((name or "").strip())
        if held is None:
            self.judge.report("environment-dump", self.use.call.text)
        elif self.judge.policy.patterns["secret_names"].search(self.strings[int(held[1])]):
            self.judge.report("secret-in-output", self.use.call.text)

    def _ask(self) -> None:
        self.judge.report("inline-code", self.use.call.text)
