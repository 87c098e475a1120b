"""Instructions about the log in the files that agents read at the start of a session."""

import os

from decklog.agents.setup import files
from decklog.agents.setup.parts import FilePart, TextBlock, WholeFile

TITLE = "The record of this work: Decklog"
COMMANDS = """\
This repository keeps its tasks, decisions and costs in a Decklog log. The commands find your run, task and claim by themselves.

- `decklog next`: get a task, or see the one you have. Exit 7: nothing now, `--wait 60` waits for one.
- `decklog done "WHAT" --evidence "COMMAND OR FILE"`: end it as done; say what shows it.
- `decklog fail "WHY"`: end this try. `decklog block "WHY"`: when only a change outside can help.
- `decklog note "TEXT"`: what you found or decided, while you work; `-` reads it from stdin.
- `decklog ask "QUESTION"`: ask a person. Exit 0 granted, 6 denied, 7 no answer yet: ask the same again to hear it.
- `decklog plan "TITLE" "TITLE"`: add tasks; alone it shows how the plan stands.
- `decklog recall WORDS`: lessons that fit, before you begin. `decklog remember "LESSON"`: one that you verified.
- `decklog spend MODEL --in N --out N`: tokens of a call that nobody else records for you.

Approving, raising budgets and changing the policy are the manager's: there is no command of yours for it. When a call is held,
reach the goal another way, or ask."""

# Files that programs read instead of AGENTS.md, if they exist.
_OTHERS = ("CLAUDE.md", "GEMINI.md")


def agents_md(project: str) -> list[FilePart]:
    """Return the parts for AGENTS.md and for existing files that a program reads instead."""
    main = os.path.join(project, "AGENTS.md")
    others = [os.path.join(project, name) for name in _OTHERS]
    return [TextBlock(path, block()) for path in (main, *(path for path in others if _is_read_instead(path, main)))]


def block() -> str:
    return f"## {TITLE}\n\n{COMMANDS}"


def cursor_rule(project: str) -> list[FilePart]:
    """Return the rule that Cursor reads at every request."""
    head = "---\ndescription: How to work with the Decklog log of this repository\nalwaysApply: true\n---\n"
    mark = "<!-- Written by `decklog setup cursor`; --remove takes it out. -->"
    path = os.path.join(project, ".cursor", "rules", "decklog.mdc")
    return [WholeFile(path, f"{head}{mark}\n# {TITLE}\n\n{COMMANDS}\n", "Written by `decklog setup cursor`")]


def _is_read_instead(path: str, main: str) -> bool:
    """Return whether a program reads this file instead of the main one: a different file that does not import it."""
    if files.real(path) == files.real(main):
        return False
    text = files.read(files.real(path))
    return text is not None and "@AGENTS.md" not in text
