"""Judging of programs with a language of their own for files: modes, dd, tar, jq, mlr, XML."""

import re

from decklog.guard.policy.programs.hosts import host_of, is_local
from decklog.guard.policy.programs.use import Judge, Use, script_texts
from decklog.guard.policy.shell.words import UNKNOWN, Word

_LONGEST = 8_000
_MUCH = 50 << 30
_SIZE = re.compile(r"(\d+)([kKmMgGtTpPeE]?)(?:i?B)?$")
_BUNDLE = re.compile(r"[A-Za-z]*[cxtru][A-Za-z]*")
_FILTER_STRING = re.compile(r'"((?:[^"\\]|\\.)+)"')
_COMMANDS_OF_TOOL = re.compile(r"\b(?:scripts|tasks|cmds|hooks|entry|commands)\b")
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
            judge.report("value-unknown", use.call.text)


def check_dd(judge: Judge, use: Use) -> None:
    """Judge dd by the files it reads and writes, and by how much it writes."""
    given = {}
    for word in use.call.argv[1:]:
        name, _, value = word.text.partition("=")
        given[name] = value
        if name in ("of", "if"):
            judge.path("write" if name == "of" else "read", Word(value, word.taint), use.scope, use.call.text)
        if name == "of" and use.call.stdin is not None:
            use.scope.wrote(value, use.call.stdin)
            judge.written(value, use.call.stdin, use.scope, use.call)
    if (
        given.get("if") in judge.policy.names["endless"]
        and "of" in given
        and judge.paths.classify(given["of"], use.scope.cwd) != "harmless"
    ):
        size = _bytes(given.get("count", "")) * _bytes(given.get("bs", given.get("obs", "512")))
        if not size or size > _MUCH:
            judge.report("fills-disk", use.call.text)


def _bytes(size: str) -> int:
    """Give a number with its unit, as dd reads it; 0 if there is none."""
    found = _SIZE.match(size)
    return int(found[1]) * 1024 ** (" kmgtpe".find(found[2].lower() or " ")) if found else 0


def check_compiler(judge: Judge, use: Use) -> None:
    """Judge the files that a source takes in which the script itself has written: their text comes out in messages."""
    texts = [use.call.stdin.text] if use.call.stdin is not None else []
    texts += [written.text for word in use.operands if (written := use.scope.written(word.text)) is not None]
    for text in texts:
        for found in judge.policy.patterns["secret_include"].finditer(text[:_LONGEST]):
            judge.path("read", Word(next(part for part in found.groups() if part)), use.scope, use.call.text)


def check_tar(judge: Judge, use: Use) -> None:
    """Judge the archive of options written without a dash, and the programs that tar is told to start."""
    operands = use.arguments.operands
    if operands and _BUNDLE.fullmatch(operands[0].text) and "f" in operands[0].text and operands[1:]:
        role = "write" if set(operands[0].text) & set("cru") else "read"
        judge.path(role, operands[1], use.scope, use.call.text)
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


def check_jq(judge: Judge, use: Use) -> None:
    """Judge the filter of jq or yq: those that read the environment or a file, and editing in place."""
    texts = [word.text for word in use.call.argv]
    for place, text in enumerate(texts):
        # These take a name and then the file it stands for.
        if text in ("--slurpfile", "--rawfile", "--argfile") and texts[place + 2 :]:
            judge.path("read", use.call.argv[place + 2], use.scope, use.call.text)
    filters = [word.text for word in (*use.arguments.operands[:2], *script_texts(judge, use, "-f", "--from-file"))]
    if any(judge.matches("jq_danger", text) for text in filters):
        judge.report("environment-dump", use.call.text)
    for text in filters:
        _check_kept_commands(judge, use, text)
    if use.arguments.has(("-i", "--inplace", "--in-place")):
        for word in use.arguments.operands[1:]:
            judge.path("write", word, use.scope, use.call.text)


def _check_kept_commands(judge: Judge, use: Use, text: str) -> None:
    """Ask about a filter that puts a command among those of a build tool which would be refused."""
    if not _COMMANDS_OF_TOOL.search(text[:_LONGEST]):
        return
    # A string may also be given beside the filter, by a name.
    given = [word.text for word in use.call.argv if " " in word.text and word.text != text]
    strings = [*_FILTER_STRING.findall(text[:_LONGEST]), *given]
    if any(judge.refusal("shell", Word(string.replace('\\"', '"')), use.scope, use.call) for string in strings):
        judge.report("written-to-run", use.call.text)


def check_dc(judge: Judge, use: Use) -> None:
    """Judge what dc computes: an exclamation mark that compares nothing starts a shell."""
    texts = [*(word.text for word in use.call.argv[1:]), use.call.stdin.text if use.call.stdin else ""]
    if any(judge.matches("dc_shell", text) for text in texts):
        judge.report("inline-code", use.call.text)


def check_mlr(judge: Judge, use: Use) -> None:
    """Judge the expressions of mlr: those that start a program or write a file are asked about."""
    if any(judge.matches("mlr_danger", word.text) for word in use.call.argv[1:]):
        judge.report("inline-code", use.call.text)


# What a text of XML takes in: entities of a document type, and files that it includes.
_TAKEN_IN = re.compile(
    r"<!ENTITY\s[^>]*?(?:SYSTEM|PUBLIC\s+[\"'][^\"']*[\"'])\s+[\"']([^\"']+)[\"']"
    r"|<!DOCTYPE\s+\S+\s+(?:SYSTEM|PUBLIC\s+[\"'][^\"']*[\"'])\s+[\"']([^\"']+)[\"']"
    r"|\b(?:include|import)\s[^>]*?href\s*=\s*[\"']([^\"']+)[\"']"
    r"|\b(?:document|unparsed-text|doc)\(\s*[\"']([^\"']+)[\"']"
)


def check_xml(judge: Judge, use: Use) -> None:
    """Judge the files that a text of XML takes in which stands on the command line, or which the script has written."""
    texts = [use.call.stdin.text] if use.call.stdin is not None else []
    for word in use.arguments.operands:
        written = use.scope.written(word.text)
        texts.append(word.content or (written.text if written is not None else ""))
    for text in texts:
        for found in _TAKEN_IN.finditer(text[:_LONGEST]):
            place = next(part for part in found.groups() if part)
            judge.role("url" if "://" in place else "read", Word(place), use.call, use.scope)
