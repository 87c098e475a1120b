"""Judging of programs with a language of their own for files: modes, dd, tar, sed, awk, SQL, make targets."""

import re

from decklog.tools.policy.programs.hosts import host_of, is_local
from decklog.tools.policy.programs.snippets import check_snippet
from decklog.tools.policy.programs.use import Judge, Use
from decklog.tools.policy.shell.words import UNKNOWN, Word

_LONGEST = 8_000
_CLAUSE = re.compile(r"([ugoa]*)((?:[-+=][rwxXstugo]*)+)")


def is_open_mode(mode: str) -> bool:
    """Tell whether a mode lets everybody write, or runs a program with its owner's rights."""
    if re.fullmatch(r"[=+-]?[0-7]{1,5}", mode):
        bits = int(mode.lstrip("=+-") or "0", 8)
        return not mode.startswith("-") and bool(bits & 0o6002)
    for clause in mode.split(","):
        found = _CLAUSE.fullmatch(clause)
        if not found:
            continue
        for action in re.findall(r"[+=][rwxXstugo]*", found[2]):
            for_all = "o" in found[1] or "a" in found[1]
            if (for_all and ("w" in action or "u" in action)) or ("s" in action and found[1] != "o"):
                return True
            if not found[1] and action.startswith("=") and "w" in action:
                return True
    return False


def check_mode(judge: Judge, use: Use) -> None:
    """Judge the mode given to chmod or install."""
    for word in use.arguments.operands:
        if is_open_mode(word.text):
            judge.report("chmod-world-writable", use.call.text)
        elif UNKNOWN in word.text:
            judge.report("not-understood", use.call.text)


def check_dd(judge: Judge, use: Use) -> None:
    """Judge dd by the files it reads and writes."""
    for word in use.call.argv[1:]:
        name, _, value = word.text.partition("=")
        if name in ("of", "if"):
            judge.path("write" if name == "of" else "read", Word(value, word.taint), use.scope, use.call.text)


def check_tar(judge: Judge, use: Use) -> None:
    """Judge the programs that tar is told to start."""
    for _, word in use.arguments.values:
        if word.text.startswith("exec="):
            judge.report("option-runs-program", use.call.text)
            judge.run_text("shell", Word(word.text[5:]), use.scope, use.call)


def check_openssl(judge: Judge, use: Use) -> None:
    """Judge openssl: talking to another machine is asked about."""
    texts = {word.text for word in use.operands}
    if texts & {"s_client", "s_server"}:
        host = use.arguments.value("-connect", "-host")
        if host is None or not is_local(judge.policy, host_of(judge.policy, host.text)):
            judge.report("network-host", use.call.text)
        if use.taint & {"secret", "environment", "shell"}:
            judge.report("exfiltration", use.call.text)


def check_sed(judge: Judge, use: Use) -> None:
    """Judge sed: the files it edits or reads, and scripts that run commands or write files."""
    scripts = [word for option, word in use.arguments.values if option in ("-e", "--expression")]
    in_place = use.arguments.has(("-i", "--in-place"))
    files = [word for word in use.arguments.operands if word.text or not in_place]
    if not scripts and not use.arguments.has(("-f", "--file")):
        scripts, files = files[:1], files[1:]
    role = "write" if in_place else "read"
    for word in files:
        judge.path(role, word, use.scope, use.call.text)
    for script in scripts:
        if judge.matches("sed_danger", script.text):
            judge.report("option-runs-program", use.call.text)
        for found in judge.policy.patterns["sed_file"].finditer(script.text[:_LONGEST]):
            judge.path("write", Word(found[1]), use.scope, use.call.text)


def check_awk(judge: Judge, use: Use) -> None:
    """Judge awk: the files it reads, and programs that run commands or write files."""
    operands = list(use.arguments.operands)
    scripts = [word for option, word in use.arguments.values if option in ("-e", "--source")]
    if not scripts and not use.arguments.has(("-f", "--file")):
        scripts, operands = operands[:1], operands[1:]
    for word in operands:
        if "=" not in word.text:
            judge.path("read", word, use.scope, use.call.text)
    for script in scripts:
        if judge.matches("awk_danger", script.text):
            judge.report("inline-code", use.call.text)
            check_snippet(judge, script.text, use.scope, use.call)


def check_sql(judge: Judge, use: Use) -> None:
    """Judge a database client by its statements and by the machine it talks to."""
    stdin = [use.call.stdin] if use.call.stdin else []
    codes = [word for option, word in use.arguments.values if use.program.options.get(option) == "code"]
    for word in [*codes, *use.operands, *stdin]:
        if judge.matches("destructive_sql", word.text):
            judge.report("sql-destructive", use.call.text)
        found = judge.policy.patterns["sql_shell"].search(word.text[:_LONGEST])
        if found and word not in use.operands[:1]:
            judge.report("option-runs-program", use.call.text)
            judge.run_text("shell", Word(found[2]), use.scope, use.call)
        if "://" in word.text and not is_local(judge.policy, host_of(judge.policy, word.text)):
            judge.report("network-host", use.call.text)
    host = use.arguments.value("-h", "--host")
    if host is not None and not host.text.startswith("/") and not is_local(judge.policy, host.text):
        judge.report("network-host", use.call.text)


def check_targets(judge: Judge, use: Use) -> None:
    """Judge the targets of a build tool, or the scripts of a package, by their names."""
    file = use.arguments.value("-f", "--file", "--makefile")
    if file is not None and file.text in ("-", "/dev/stdin"):
        judge.report("piped-to-interpreter", use.call.text)
    for word in use.operands:
        name, equals, _ = word.text.partition("=")
        if not equals and judge.policy.patterns["deploy_target"].search(name):
            judge.report("deploy-target", use.call.text)
        elif UNKNOWN in name:
            judge.report("dynamic-command", use.call.text)
