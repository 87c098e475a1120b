"""Judging of inline code in languages without a parser here: by the calls, the words and the strings in it."""

import re

from decklog.guard.policy.programs.use import Judge
from decklog.guard.policy.shell.scope import Scope
from decklog.guard.policy.shell.simple_command import Call
from decklog.guard.policy.shell.words import UNKNOWN, Word, decode_ansi

_BACKTICKS = re.compile(r"(?:`|%x[({\[|!])([^`)}\]|!]*)[`)}\]|!]")
_IDENTIFIER = re.compile(r"(?<![\w.$@%])[A-Za-z_]\w*(?!\w|\s*:(?!:))")
_DOTTED_IDENTIFIER = re.compile(r"(?<![\w.$@%:])[A-Za-z_.][\w.]*(?:::[\w.]+)?(?!\w)")
_METHOD = re.compile(r"(?:(?<!\.)\.|\?\.|->|::)\s*([A-Za-z_]\w*[!?]?)")
_STRING = re.compile(r"""(["'])((?:\\.|(?!\1)[^\\\n]){0,400})\1""", re.DOTALL)
_INSERTED = re.compile(r"[#@$]\{[^}]*\}?|\{\$[^}]*\}?|\$\([^)]*\)?")
# A slash where no value stands before it begins a pattern; one that holds code is left as it is.
_PATTERN = re.compile(
    r"(?:(?<=[(=,~!&|;{}\n])|(?<=\bif)|(?<=\bunless)|(?<=\band)|(?<=\bor)|(?<=\breturn)|(?<=\bfor)|^)\s*/(?![/*])(?:\\.|(?![#@?]\{)[^/\\\n`]){1,200}/[gimsuxy]*"
)
_COMMENT = re.compile(r"(?m)(?<![\w:'\"])//[^\n]*$|(?<![$\w'\"])#(?!\{)[^\n]*$")
# What is only looked up in a value, and not called.
_PROPERTY = re.compile(r"->\s*[A-Za-z_]\w*+(?!\s*\()")
_MOST_STRINGS = 200
_LONGEST = 8_000
_DOTTED = {"r"}


def check_snippet(judge: Judge, code: str, scope: Scope, call: Call) -> None:
    """Judge code: refused if it opens a shell or destroys, harmless only if nothing in it could act."""
    code = code[:_LONGEST]
    patterns, language = judge.policy.patterns, _language(judge, call)
    check_known_attacks(judge, code, call)
    # A pattern of JavaScript has a method `exec` that runs nothing.
    has_calls = language != "javascript" or patterns["process_module"].search(code)
    for found in patterns["shell_calls"].finditer(code) if has_calls else ():
        judge.run_text("shell", Word(found[2]), scope, call)
    for role in ("delete", "write"):
        for found in patterns[f"{role}_calls"].finditer(code):
            judge.path(role, Word(found[2]), scope, call.text)
            if role == "write" and judge.paths.is_run_by_tools(found[2]):
                _check_kept(judge, found[2], code, scope, call)
    for found in patterns["read_calls"].finditer(code):
        judge.path("read", Word(found[2]), scope, call.text)
    for found in patterns["argument_calls"].finditer(code):
        words = [string[2] for string in patterns["strings"].finditer(found[1])]
        judge.review(Call([Word(word) for word in words], call.text), scope)
    if language in ("perl", "ruby", "php"):
        for found in _BACKTICKS.finditer(code):
            judge.run_text("shell", Word(found[1]), scope, call)
    check_strings(judge, code, scope, call)
    if UNKNOWN in code or len(code) >= _LONGEST or not _is_harmless(judge, code, language):
        judge.report("inline-code", call.text)


def _check_kept(judge: Judge, path: str, code: str, scope: Scope, call: Call) -> None:
    """Ask about code that writes a file which a build tool runs, where one of its texts would be refused as a command."""
    texts = [found[2] for found in judge.policy.patterns["strings"].finditer(code) if " " in found[2]]
    for text in texts[:_MOST_STRINGS]:
        judge.written(path, Word(decode_ansi(text)), scope, call)
        if judge.refusal("shell", Word(text), scope, call):
            judge.report("written-to-run", call.text)


def _language(judge: Judge, call: Call) -> str:
    """Name the language of a program's code, nothing where only its words are known."""
    names = [word.text.rsplit("/", 1)[-1].split(" ")[0] for word in call.argv[:2]]
    return next((judge.policy.languages[name] for name in names if name in judge.policy.languages), "")


def _is_harmless(judge: Judge, code: str, language: str) -> bool:
    """Tell whether code is a plain substitution, or uses only words known to compute and print."""
    patterns = judge.policy.patterns
    if patterns["substitution"].fullmatch(code.strip()):
        return True
    # Files that are named outright have been judged where they are named.
    code = patterns["literal_writes"].sub(" ", _without_listed(judge, patterns["read_calls"].sub(" ", code), code))
    if not patterns["file_module_use"].search(code):
        code = patterns["file_module"].sub(" ", code)
    if language:
        return _only_computes(judge, code, language)
    if patterns["risky_code"].search(code):
        return False
    bare = patterns["strings"].sub(" ", patterns["local_module"].sub(" ", code))
    declared = {next(filter(None, found.groups())) for found in patterns["declared"].finditer(code)}
    return all(word in judge.policy.names["safe_code"] or word in declared for word in _IDENTIFIER.findall(bare))


def _without_listed(judge: Judge, code: str, whole: str) -> str:
    """Leave out the reading of files whose names a loop takes from the list of a directory; a name that is made up stays."""
    patterns = judge.policy.patterns
    if not patterns["listed_directory"].search(whole) or patterns["made_up_name"].search(whole):
        return code

    def left(found: re.Match[str]) -> str:
        name = found[0].rstrip().rpartition(" ")[2].rpartition("(")[2].rpartition("+")[2].rpartition(",")[2].strip()
        return found[0] if re.search(rf"\b{name}\s*=(?![>=])", whole) else " ("

    return patterns["variable_reads"].sub(left, code)


def _only_computes(judge: Judge, code: str, language: str) -> bool:
    """Tell whether every name in code of a known language computes or prints, and none that is called is made up on the way."""
    patterns = judge.policy.patterns
    declared = _declared(judge, _STRING.sub(_without_text, code))
    for part in ("loopback_fetch", "module_use", "local_module"):
        code = patterns[part].sub(" ", code)
    bare = _COMMENT.sub("", _PATTERN.sub(" 0 ", _STRING.sub(_without_text, code)))
    bare = patterns["harmless_parts"].sub(" 0 ", bare)
    if patterns["made_up_call"].search(bare):
        return False
    bare = _PROPERTY.sub(" ", bare)
    risky = patterns.get("risky_method_" + language) or patterns["risky_method"]
    if any(risky.search(method) for method in _METHOD.findall(bare)):
        return False
    safe = judge.policy.names["safe_" + language]
    found = (_DOTTED_IDENTIFIER if language in _DOTTED else _IDENTIFIER).findall(bare)
    return all(word in safe or word in declared for word in found)


def _without_text(found: re.Match[str]) -> str:
    """Leave of a string only the code that is put into it."""
    inserted = " ".join(_INSERTED.findall(found[2])) if found[1] == '"' else ""
    return f'"" {inserted} ' if inserted else '""'


def _declared(judge: Judge, bare: str) -> set[str]:
    """Give the names that code gives to its own values: parameters and variables, of which a plain one is never called."""
    names: set[str] = set()
    for found in judge.policy.patterns["declared_names"].finditer(bare):
        names.update(re.findall(r"[A-Za-z_]\w*", next(filter(None, found.groups()), "")))
    for found in judge.policy.patterns["assigned_names"].finditer(bare):
        names.update(name for name in re.findall(r"[A-Za-z_]\w*", found[1]) if not re.search(rf"\b{name}\s*[(\"]", bare))
    return names


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
