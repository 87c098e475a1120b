"""Shell builtins that change what the rest of the script means."""

from decklog.guard.policy.programs.use import Judge, Use
from decklog.guard.policy.shell.words import UNKNOWN, UNKNOWN_WORD, Word

_DANGEROUS_TO_STAND_IN = {
    "root",
    "home",
    "system",
    "parent",
    "device",
    "git",
    "guard",
    "hooks",
    "startup",
    "secret",
}


def check_cd(judge: Judge, use: Use) -> None:
    """Follow a change of directory.

    Without a stated root, a script that goes to an ordinary directory elsewhere is taken to work in the
    repository there.
    """
    target = use.arguments.operands[0].text if use.arguments.operands else "~"
    if use.name == "popd" or "-" in (word.text for word in use.call.argv[1:]):
        use.scope.cwd, use.scope.before = use.scope.before, use.scope.cwd
        return
    use.scope.before = use.scope.cwd
    place = judge.paths.locate(target, use.scope.cwd)
    kind = judge.paths.classify(target, use.scope.cwd)
    if UNKNOWN in place:
        use.scope.cwd = UNKNOWN
    elif judge.paths.root is None and place.startswith(("/", "~", "../")) and kind not in _DANGEROUS_TO_STAND_IN:
        use.scope.cwd = "."
    else:
        use.scope.cwd = place


def check_set(_judge: Judge, use: Use) -> None:
    """Take the positional parameters that `set --` gives."""
    if "--" in use.arguments.flags:
        use.scope.positional = list(use.arguments.operands)


def check_read(_judge: Judge, use: Use) -> None:
    """Give the variables of `read` what stands on standard input."""
    stdin = use.call.stdin or UNKNOWN_WORD
    separators = use.call.assigned.get("IFS") or (use.scope.value("IFS") if "IFS" in use.scope.variables else Word(""))
    text = UNKNOWN if UNKNOWN in separators.text else stdin.text.translate(dict.fromkeys(map(ord, separators.text), " "))
    lines = [line for line in (text or stdin.text).split("\n") if line] or [UNKNOWN]
    array = use.arguments.value("-a")
    names = use.arguments.operands or ([] if array else [Word("REPLY")])
    for place, name in enumerate(names):
        # One word each, and what is left for the last.
        parts = [line.split(maxsplit=len(names) - 1) for line in lines]
        use.scope.offer(name.text, [Word(part[place], stdin.taint) for part in parts if part[place:]] or [Word("", stdin.taint)])
    if array is not None:
        use.scope.offer(array.text, [Word(line, stdin.taint) for line in lines])
