"""Finds the project and its database: named, from the environment, from .bazinga/paths.env, or in a folder above."""

import os
from typing import Any

from decklog.db.sqlite.query import tables_of

VARIABLE = "BAZINGA_ROOT"
# Set by the scripts that call Decklog in a project that was switched to Decklog.
SCRIPT_VARIABLE = "DECKLOG_BAZINGA_SCRIPT_ROOT"
_PATHS_FILE = os.path.join(".bazinga", "paths.env")
# How a project was found, in the words of the older program.
BY_VARIABLE = f"{VARIABLE} environment variable"
BY_PATHS_FILE = f"{_PATHS_FILE} file"
BY_SCRIPT = "script location"
BY_FOLDER = "current working directory"


def database_of(root: str) -> str:
    return os.path.join(root, "bazinga", "bazinga.db")


def log_of(path: str) -> tuple[str, str | None]:
    """Return the log of a database, and the file that readers open instead of it.

    Usually the path is a file in bazinga's own schema, with the log next to it. It may also be the log itself.
    """
    if "://" in path:
        return path, None
    beside = log_path_for(path)
    if not os.path.exists(beside) and os.path.exists(path) and os.path.getsize(path) > 0:
        return path, None
    return beside, path


def detect() -> tuple[str | None, str]:
    """Find the project root that a call from here means, and say how it was found."""
    named = os.environ.get(VARIABLE)
    if named and is_root(named):
        return os.path.abspath(named), BY_VARIABLE
    from_file = _from_paths_file()
    if from_file is not None and is_root(from_file):
        return os.path.abspath(from_file), BY_PATHS_FILE
    above_script = os.environ.get(SCRIPT_VARIABLE)
    if above_script and is_root(above_script):
        return os.path.abspath(above_script), BY_SCRIPT
    folder = os.getcwd()
    while True:
        if is_root(folder):
            return folder, BY_FOLDER
        parent = os.path.dirname(folder)
        if parent == folder:
            return None, ""
        folder = parent


def is_root(folder: str) -> bool:
    """Return whether a folder is a project, which has both .claude and bazinga."""
    return os.path.isdir(os.path.join(folder, ".claude")) and os.path.isdir(os.path.join(folder, "bazinga"))


def _from_paths_file() -> str | None:
    try:
        with open(_PATHS_FILE, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    for line in lines:
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        if equals and name.strip() == VARIABLE:
            return value.strip().strip("'\"")
    return None


def root_of(db_path: str) -> str:
    """Return the project of a database: the one that contains it, or the current one."""
    folder = os.path.dirname(os.path.abspath(db_path))
    if "://" not in db_path and os.path.basename(folder) == "bazinga":
        return os.path.dirname(folder)
    return detect()[0] or os.getcwd()


def described() -> dict[str, Any]:
    """Return what detection finds, to explain which database a call uses."""
    root, source = detect()
    here = {"cwd": os.getcwd(), "env_var_set": bool(os.environ.get(VARIABLE))}
    if root is None:
        return {"error": "no folder above has both .claude/ and bazinga/", **here}
    skills = os.path.join(root, ".claude", "skills")
    return {
        "project_root": root,
        "detection_source": source,
        "db_path": database_of(root),
        "skills_dir": skills,
        "artifacts_dir": os.path.join(root, "bazinga", "artifacts"),
        "agents_dir": os.path.join(root, "agents"),
        **here,
    }


def is_old_database(path: str) -> bool:
    """Return whether a file is a SQLite database that bazinga-db itself made."""
    return {"sessions", "orchestration_logs"} <= tables_of(path)


def log_path_for(path: str) -> str:
    """Return the path of the log whose readers open this file."""
    return "{}.decklog{}".format(*os.path.splitext(path))
