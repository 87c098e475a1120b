"""Requests to merge a branch, by the programs of forges: `gh` for GitHub, `glab` for GitLab."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from decklog.core.errors import TimedOut, Unavailable
from decklog.guard.calls.tool import EffectCheck

_SECONDS = 120.0


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request that a branch be merged into another."""

    branch: str
    base: str
    title: str
    body: str
    is_draft: bool = False


@dataclass(frozen=True)
class Forge:
    """A forge's program: how it opens a request, and how it lists the open ones of a branch as JSON."""

    program: str
    hint: str
    create: Callable[[Request], Sequence[str]]
    find: Callable[[str], Sequence[str]]
    address: str
    # Whether the body is read from standard input.
    reads_body: bool

    def open(self, folder: Path, request: Request) -> str:
        """Open a request, unless the branch has one; return its address."""
        already = self.opened(folder, request.branch)
        if already.happened:
            return str(already.result)
        said = self._call(folder, self.create(request), given=request.body if self.reads_body else "")
        # The address is in the last line; glab writes other lines before it.
        words = [word for line in said.splitlines() for word in line.split() if word.startswith(("https://", "http://"))]
        return words[-1] if words else said.strip().splitlines()[-1]

    def opened(self, folder: Path, branch: str) -> EffectCheck:
        """Look for an open request of a branch."""
        said = self._call(folder, self.find(branch))
        found = json.loads(said) if said.strip() else []
        return EffectCheck(bool(found), str(found[0][self.address]) if found else None)

    def _call(self, folder: Path, words: Sequence[str], given: str = "") -> str:
        name = f"{self.program} {' '.join(words[:2])}"
        env = {**os.environ, "GH_PROMPT_DISABLED": "1", "NO_PROMPT": "1", "NO_COLOR": "1"}
        try:
            done = subprocess.run(
                [self.program, *words],
                cwd=folder,
                env=env,
                input=given,
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as problem:
            raise TimedOut(f"{name} did not end in {_SECONDS:g} seconds") from problem
        if done.returncode:
            raise Unavailable(f"{name} failed: {done.stderr.strip()[:300]}", hint=self.hint)
        return done.stdout


def _gh_create(one: Request) -> Sequence[str]:
    draft = ("--draft",) if one.is_draft else ()
    return ("pr", "create", *draft, "--base", one.base, "--head", one.branch, "--title", one.title, "--body-file", "-")


def _glab_create(one: Request) -> Sequence[str]:
    draft = ("--draft",) if one.is_draft else ()
    branches = ("--source-branch", one.branch, "--target-branch", one.base)
    return ("mr", "create", *draft, *branches, "--title", one.title, "--description", one.body, "--yes")


GITHUB = Forge(
    "gh",
    "Try it: gh auth status",
    _gh_create,
    lambda branch: ("pr", "list", "--head", branch, "--state", "open", "--json", "url"),
    "url",
    reads_body=True,
)
GITLAB = Forge(
    "glab",
    "Try it: glab auth status",
    _glab_create,
    lambda branch: ("mr", "list", "--source-branch", branch, "--output", "json"),
    "web_url",
    reads_body=False,
)


def forge_of(url: str) -> Forge:
    """Choose the program for a remote by its address; where that names no forge, the first that is installed."""
    meant = [GITLAB] if "gitlab" in url.lower() else [GITHUB] if "github" in url.lower() else [GITHUB, GITLAB]
    found = next((forge for forge in meant if shutil.which(forge.program)), None)
    if found is None:
        names = " or ".join(forge.program for forge in meant)
        raise Unavailable(f"no request can be opened: {names} is not installed", hint=f"Install {names}, and log in.")
    return found
