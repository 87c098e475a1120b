"""The one way in which git is called: on objects, with no settings but ours, and on the refs of the repository."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from decklog.conductor import kill_points
from decklog.core.errors import TimedOut, Unavailable

LONGEST_SECONDS = 300.0
OLDEST = (2, 38)

# What a repository's settings could have git start, and what must not differ between two computers.
_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
    # An index is made anew after a crash; what it leads to is on disk.
    "core.fsync": "all,-index",
    "core.quotePath": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "protocol.allow": "never",
    "merge.renames": "true",
    "merge.renameLimit": "10000",
    "merge.directoryRenames": "false",
    "merge.conflictStyle": "merge",
    "diff.algorithm": "myers",
}
_FIXED = {
    "LC_ALL": "C",
    "TZ": "UTC",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "false",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    # What is read is what would be pushed.
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_NOSYSTEM": "1",
}
_PASSED = ("PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR")
_WORDS = [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]


@dataclass(frozen=True)
class GitResult:
    """What git said."""

    code: int
    out: bytes

    @property
    def text(self) -> str:
        return self.out.decode(errors="surrogateescape").strip()


def fixed_settings() -> Mapping[str, str]:
    """Return the settings on which the outcome of a merge depends."""
    return dict(_SETTINGS)


def call(
    words: Sequence[str],
    *,
    variables: Mapping[str, str],
    cwd: str | Path = "/",
    given: bytes | None = None,
    accepted: Sequence[int] = (0,),
    settings: Sequence[str] = (),
    seconds: float = LONGEST_SECONDS,
) -> GitResult:
    """Call git without its user's environment, hooks and prompts; raise unless it ends with an accepted code.

    `settings` stand beside those that are fixed, each as NAME=VALUE.
    """
    kill_points.reached(f"git:{words[0]}:before")
    try:
        done = subprocess.run(
            ["git", *_WORDS, *(word for one in settings for word in ("-c", one)), *words],
            input=given if given is not None else b"",
            capture_output=True,
            cwd=cwd,
            env=_environment(variables),
            timeout=seconds,
            check=False,
        )
    except FileNotFoundError as problem:
        raise Unavailable("git is not installed, or not on the PATH", hint="Install git 2.38 or newer.") from problem
    except subprocess.TimeoutExpired as problem:
        raise TimedOut(f"git {words[0]} did not end in {seconds:g} seconds", hint="Look at disk and network.") from problem
    kill_points.reached(f"git:{words[0]}:after")
    if done.returncode not in accepted:
        said = done.stderr.decode(errors="replace").strip()
        raise Unavailable(
            f"git {words[0]} failed: {said or f'exit code {done.returncode}'}", exit_code=done.returncode, words=list(words)
        )
    return GitResult(done.returncode, done.stdout)


def begin(words: Sequence[str], *, variables: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    """Begin a call of git in the same way that is asked more than once; what it says of its end nobody hears."""
    return subprocess.Popen(
        ["git", *_WORDS, *words],
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env=_environment(variables),
    )


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    own = {name: os.environ[name] for name in _PASSED if name in os.environ}
    return {**own, **_FIXED, **variables}


@cache
def version() -> str:
    """Return the version of git, and refuse one that is too old to merge without a working tree."""
    words = call(["--version"], variables={}).text.split()
    numbers = tuple(int(part) for part in words[2].split(".")[:2] if part.isdigit())
    if numbers < OLDEST:
        raise Unavailable(f"git is {words[2]}; merging without a working tree needs 2.38", hint="Install a newer git.")
    return words[2]
