"""The scripts that agents' prompts name: each is replaced by one that calls Decklog, and is kept beside it."""

import os
import tempfile

_SKILLS = os.path.join(".claude", "skills")
# Where a project has them, and the command that does what each did.
SCRIPTS = {
    os.path.join("bazinga-db", "scripts", "bazinga_db.py"): "",
    os.path.join("bazinga-db", "scripts", "init_db.py"): "init-db",
    os.path.join("bazinga-db", "scripts", "init_session.py"): "init-session",
    os.path.join("bazinga-db", "scripts", "auto_logger.py"): "auto-logger",
    os.path.join("config-seeder", "scripts", "seed_configs.py"): "seed-configs",
    os.path.join("workflow-router", "scripts", "workflow_router.py"): "route",
}
_MARK = "Answered by Decklog."
_TEXT = '''#!/usr/bin/env python3
"""{mark} The script that stood here is beside it, as {name}{aside}."""

import os
import sys

PYTHON = {python!r}
COMMAND = {command!r}

if __name__ == "__main__":
    # The project is the one that this file lies in, wherever it is called from.
    os.environ.setdefault("DECKLOG_BAZINGA_SCRIPT_ROOT", os.path.abspath(os.path.join(os.path.dirname(__file__), *[".."] * 4)))
    words = ["bazinga", *COMMAND, *sys.argv[1:]]
    try:
        from decklog.cli import main
    except ImportError:
        # Decklog lives with the Python that took this project over.
        os.execv(PYTHON, [PYTHON, "-P", "-m", "decklog", *words])
    main(words)
else:
    from decklog.plugins.legacy.bazinga import *  # noqa: F403
'''


def stand_in(root: str, python: str, aside: str) -> list[str]:
    """Replace the scripts that a project has; name those that call Decklog now."""
    found = []
    for place, command in SCRIPTS.items():
        path = os.path.join(root, _SKILLS, place)
        if os.path.isfile(path):
            _replace(path, python, [command] if command else [], aside)
            found.append(os.path.relpath(path, root))
    return found


def _replace(path: str, python: str, command: list[str], aside: str) -> None:
    with open(path, encoding="utf-8", errors="replace") as file:
        is_ours = _MARK in file.read(1000)
    if not is_ours and not os.path.lexists(path + aside):
        os.link(path, path + aside)
    text = _TEXT.format(mark=_MARK, name=os.path.basename(path), aside=aside, python=python, command=command)
    opened, made = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".decklog-")
    with os.fdopen(opened, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(made, os.stat(path).st_mode & 0o777)
    os.replace(made, path)
