"""What a command leaves behind for the rest of a script: built programs, copies of known files, links."""

import posixpath

from decklog.guard.policy.programs.use import Judge, Use
from decklog.guard.policy.shell.scope import Scope
from decklog.guard.policy.shell.words import Word

_COPIES, _PAIR = frozenset(["cp", "mv", "install", "ln"]), 2


def note_made(judge: Judge, use: Use) -> None:
    """Remember the files that a command makes."""
    _note_built(judge, use)
    if use.name in _COPIES:
        _note_copied(judge, use)
        _note_linked(judge, use)


def _note_built(judge: Judge, use: Use) -> None:
    """Remember the program that a compiler makes of sources of the repository."""
    if use.name not in judge.policy.names["compilers"] or not use.operands:
        return
    if all(_is_readable_source(judge, word, use.scope) for word in use.operands):
        for option, word in use.arguments.values:
            if option in ("-o", "--output"):
                use.scope.built(word.text)


def _is_readable_source(judge: Judge, word: Word, scope: Scope) -> bool:
    """Tell whether a source is one of the repository, or a text of the script itself that reaches nothing outside."""
    if judge.paths.classify(word.text, scope.cwd) in ("inside", "top"):
        return word.text != "-"
    written = scope.written(word.text) if scope.has_made(word.text) else None
    return written is not None and not judge.matches("native_risk", written.text)


def _note_copied(judge: Judge, use: Use) -> None:
    """Remember where a file is copied or moved to that the script has written."""
    if len(use.operands) != _PAIR:
        return
    source, target = use.operands
    content = use.scope.written(source.text)
    if content is not None:
        is_folder = target.text.endswith(("/", "."))
        place = f"{target.text.rstrip('/')}/{posixpath.basename(source.text)}" if is_folder else target.text
        use.scope.wrote(place, content)
        judge.written(place, content, use.scope, use.call)


def _note_linked(judge: Judge, use: Use) -> None:
    """Remember the links that a command makes."""
    if use.name != "ln" and not use.arguments.has(("-s", "--symbolic-link", "-l", "--link")):
        return
    folder = use.arguments.value("-t", "--target-directory")
    targets = use.operands if folder is not None or len(use.operands) < _PAIR else use.operands[:-1]
    place = (folder or (use.operands[-1] if len(use.operands) >= _PAIR else Word("."))).text
    for target in targets:
        # The last word is the link's name, or a folder that gets one of the target's name.
        if folder is None and len(targets) == 1 and place != ".":
            judge.paths.link(place, target.text, use.scope.cwd)
        else:
            judge.paths.link(posixpath.join(place, posixpath.basename(target.text)), target.text, use.scope.cwd)
