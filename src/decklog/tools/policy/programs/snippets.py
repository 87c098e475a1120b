"""Judging of inline code in languages without a parser here, by the calls and strings in it."""

import re

from decklog.tools.policy.programs.use import Judge
from decklog.tools.policy.shell.scope import Scope
from decklog.tools.policy.shell.simple_command import Call
from decklog.tools.policy.shell.words import UNKNOWN, Word

_BACKTICKS = re.compile(r"(?:`|%x[({\[|!])([^`)}\]|!]*)[`)}\]|!]")
_IDENTIFIER = re.compile(r"(?<![\w.$@%])[A-Za-z_]\w*(?!\w|\s*:)")
_MOST_STRINGS = 200
_LONGEST = 8_000


def check_snippet(judge: Judge, code: str, scope: Scope, call: Call) -> None:
    """Judge code: refused if it opens a shell or destroys, harmless only if nothing in it could act."""
    code = code[:_LONGEST]
    patterns = judge.policy.patterns
    check_known_attacks(judge, code, call)
    for found in patterns["shell_calls"].finditer(code):
        judge.run_text("shell", Word(found[2]), scope, call)
    for role in ("delete", "write"):
        for found in patterns[f"{role}_calls"].finditer(code):
            judge.path(role, Word(found[2]), scope, call.text)
    for found in patterns["read_calls"].finditer(code):
        judge.path("read", Word(found[2]), scope, call.text)
    for found in patterns["argument_calls"].finditer(code):
        words = [string[2] for string in patterns["strings"].finditer(found[1])]
        judge.review(Call([Word(word) for word in words], call.text), scope)
    if call.argv and call.argv[0].text.rsplit("/", 1)[-1] in ("perl", "ruby", "php"):
        for found in _BACKTICKS.finditer(code):
            judge.run_text("shell", Word(found[1]), scope, call)
    check_strings(judge, code, scope, call)
    if UNKNOWN in code or len(code) >= _LONGEST or not _is_harmless(judge, code):
        judge.report("inline-code", call.text)


def _is_harmless(judge: Judge, code: str) -> bool:
    """Tell whether code is a plain substitution, or uses only words known to compute and print."""
    patterns = judge.policy.patterns
    if patterns["substitution"].fullmatch(code.strip()):
        return True
    # Files that are named outright have been judged where they are named.
    code = patterns["literal_writes"].sub(" ", patterns["read_calls"].sub(" ", code))
    if not patterns["file_module_use"].search(code):
        code = patterns["file_module"].sub(" ", code)
    if patterns["risky_code"].search(code):
        return False
    bare = patterns["strings"].sub(" ", patterns["local_module"].sub(" ", code))
    declared = {next(filter(None, found.groups())) for found in patterns["declared"].finditer(code)}
    return all(word in judge.policy.names["safe_code"] or word in declared for word in _IDENTIFIER.findall(bare))


def check_known_attacks(judge: Judge, code: str, call: Call) -> None:
    """Refuse shells on a socket, code fetched and run, processes without end; in any language."""
    for name in ("reverse_shell", "network_exec", "fork_loop"):
        if judge.policy.patterns[name].search(code[:_LONGEST]):
            judge.report("inline-code-dangerous", call.text)


def check_strings(judge: Judge, code: str, scope: Scope, call: Call) -> None:
    """Judge every string that names a file of secrets as if it were read."""
    for count, found in enumerate(judge.policy.patterns["strings"].finditer(code)):
        text = found[2]
        if count >= _MOST_STRINGS:
            judge.report("inline-code", call.text)
            break
        if "\n" not in text and " " not in text and judge.paths.classify(text, scope.cwd) in ("secret", "guard", "env", "vault"):
            judge.path("read", Word(text), scope, call.text)
