"""Shell builtins that change what the rest of the script means."""

from decklog.tools.policy.programs.use import Judge, Use
from decklog.tools.policy.shell.words import UNKNOWN, UNKNOWN_WORD, Word

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
    if "-" in (word.text for word in use.call.argv[1:]):
        target = "."
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
    lines = [line for line in stdin.text.split("\n") if line] or [UNKNOWN]
    words = [Word(line, stdin.taint) for line in lines]
    array = use.arguments.value("-a")
    for name in [*use.arguments.operands, *([array] if array else [])] or [Word("REPLY")]:
        use.scope.offer(name.text, words)
