"""Judging of database clients: their statements, their own commands, and the machine they talk to."""

import re

from decklog.guard.policy.programs.hosts import host_of, is_local
from decklog.guard.policy.programs.use import Judge, Use
from decklog.guard.policy.shell.words import Word

_LONGEST = 8_000
_STRING = re.compile(r"'((?:[^']|'')*)'|\"([^\"]*)\"")
_COMMAND = re.compile(
    r"(?:^|[\n;])\s*(\.[a-z]+|\\[a-zA-Z!?.]+[+S]*|source\b|system\b|pager\b|tee\b|edit\b)[ \t]*([^\n]*)", re.IGNORECASE
)
_INLINE = re.compile(
    r"\\(?:g|gx|gexec|gset|o|out|i|ir|include|copy|w|write|e|edit|s|setenv|cd|!|watch|crosstabview)\b[^\n]*|\\![^\n]*"
)
_CONNECTION = re.compile(r"\b(?:host|hostaddr)\s*=\s*'?([^\s']+)")


def check_sql(judge: Judge, use: Use) -> None:
    """Judge a database client by its statements and by the machine it talks to."""
    stdin = [use.call.stdin] if use.call.stdin and use.call.stdin.is_known else []
    if use.call.stdin and not stdin and not use.call.redirects:
        judge.report("piped-to-interpreter", use.call.text)
    codes = [word for option, word in use.arguments.values if use.program.options.get(option) == "code"]
    statements = [*codes, *use.operands, *stdin]
    for word in statements:
        _check_statement(judge, use, word)
        _check_commands(judge, use, word, is_database=word in use.operands[:1])
        _check_machine(judge, use, word.text)
    for redirect in use.call.redirects:
        if not redirect.writes and redirect.target.content is None:
            judge.path("load", redirect.target, use.scope, use.call.text)


def check_statements(judge: Judge, use: Use) -> None:
    """Judge statements that code gives to a database."""
    for word in use.arguments.operands:
        _check_statement(judge, use, word)


def _check_statement(judge: Judge, use: Use, word: Word) -> None:
    """Judge statements: those that destroy or reach outside, and the files and addresses in their strings."""
    if judge.matches("destructive_sql", word.text):
        judge.report("sql-destructive", use.call.text)
    if judge.matches("outside_sql", word.text):
        judge.report("sql-outside", use.call.text)
    for found in _STRING.finditer(word.text[:_LONGEST]):
        text = found[1] or found[2] or ""
        if text.startswith(("/", "~", "../", "|")) or "://" in text:
            judge.report("sql-outside", use.call.text)


def _check_commands(judge: Judge, use: Use, word: Word, is_database: bool) -> None:
    """Judge the commands of the client itself: those that only show may run, a file is judged by where it lies."""
    text = word.text[:_LONGEST]
    if is_database and not text.startswith((".", "\\")):
        return
    safe, loads = judge.policy.names["client_commands"], judge.policy.names["client_loads"]
    for found in [*_COMMAND.finditer(text), *_INLINE.finditer(text)]:
        command, _, rest = found[0].strip(" \t\n;").partition(" ")
        name = re.sub(r"(?<=\w)[+S]+$", "", command).lower()
        is_piped = rest.strip(" \t'\"").startswith(("|", "/", "~", ".."))
        if name in loads and rest.strip() and not is_piped:
            judge.role("load", Word(rest.strip().strip("'\"")), use.call, use.scope)
        elif name not in safe or is_piped:
            judge.report("option-runs-program", use.call.text)
            judge.run_text("shell", Word(rest.strip().strip("'\"|") or name), use.scope, use.call)


def _check_machine(judge: Judge, use: Use, text: str) -> None:
    """Judge which machine a connection string names."""
    hosts = [host_of(judge.policy, text)] if re.match(r"[a-z+]+://", text) else _CONNECTION.findall(text)
    if any(not host.startswith("/") and not is_local(judge.policy, host) for host in hosts):
        judge.report("network-host", use.call.text)
