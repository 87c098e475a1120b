"""GitHub's issues in one spelling: `gh` writes them in one way, the API in another, and either may have been cut off."""

import re
import shutil
import subprocess
from functools import lru_cache
from typing import TYPE_CHECKING

from decklog.core.errors import Invalid, TimedOut, Unavailable

if TYPE_CHECKING:
    from typing import Any

REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+\Z")
FIELDS = (
    *("number", "title", "body", "state", "stateReason", "labels", "assignees", "author", "comments", "createdAt", "updatedAt"),
    *("closedAt", "milestone", "url", "id"),
)
_MOST = 1_000_000
_CAPITAL = re.compile(r"(?<=[a-z])([A-Z])")
_ADDRESS = re.compile(r"([\w.-]+/[\w.-]+)/(?:issues|pull)/(\d+)")
# A line of an issue that says what it waits for.
_NEEDS = re.compile(r"^[^\w\n]*(?:depends on|blocked by)\b(.*)$", re.IGNORECASE | re.MULTILINE)
_NUMBER = re.compile(r"(?<![\w/])#(\d+)\b")
# Stands at the end of an issue that was made of a task here, where readers do not see it.
_MARK_START = "<!-- decklog: "
_MARK = re.compile(rf"\s*{_MARK_START}(\S+) -->\s*\Z")


def ask_gh(repository: str, seconds: float, path: str) -> None:
    """Have `gh` write all issues of a repository to a file, by the login that it has."""
    program = shutil.which("gh")
    if program is None:
        saving = f"gh issue list --repo {repository} --state all --limit {_MOST} --json {','.join(FIELDS)} > issues.json"
        hint = f"Install gh, or import a file that it wrote elsewhere: {saving}"
        raise Unavailable("there is no program gh to ask GitHub with", hint=hint)
    words = [program, "issue", "list", "--repo", repository, "--state", "all", "--limit", str(_MOST), "--json", ",".join(FIELDS)]
    try:
        with open(path, "wb") as file:
            done = subprocess.run(
                words, stdout=file, stderr=subprocess.PIPE, timeout=seconds, check=False, stdin=subprocess.DEVNULL
            )
    except subprocess.TimeoutExpired:
        raise TimedOut(f"gh took longer than {seconds:.0f} s", hint="Give it more time: --seconds") from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise Unavailable(f"gh failed: {said[:500]}", hint="Try it by hand: gh issue list")


@lru_cache(maxsize=256)
def _plain_name(name: str) -> str:
    return _CAPITAL.sub(lambda letter: f"_{letter[1].lower()}", name)


def plain_names(found: "dict[str, Any]") -> "dict[str, Any]":
    """Spell an object's names as the API does, and people by their logins."""
    named = {_plain_name(name): value for name, value in found.items()}
    for name in ("author", "user"):
        if isinstance(value := named.get(name), dict):
            named[name] = value.get("login")
    for name, inner in (("labels", "name"), ("assignees", "login")):
        if isinstance(value := named.get(name), list):
            named[name] = [one.get(inner) if isinstance(one, dict) else one for one in value]
    if isinstance(milestone := named.get("milestone"), dict):
        named["milestone"] = milestone.get("title")
    return named


@lru_cache(maxsize=256)
def _name_at(address: str) -> str | None:
    """Name the issue at an address; it is asked for with its links and comments again."""
    found = _ADDRESS.search(address)
    return f"{found[1]}#{found[2]}" if found else None


def name_of(issue: "dict[str, Any]", otherwise: str) -> str:
    """Name an issue as people do: OWNER/REPOSITORY#NUMBER."""
    for address in (issue.get("html_url"), issue.get("url"), issue.get("issue_url")):
        if isinstance(address, str) and (name := _name_at(address)) is not None:
            return name
    number = issue.get("number")
    if isinstance(number, bool) or not isinstance(number, int):
        raise Invalid("an issue needs a number")
    return f"{otherwise}#{number}"


def marked(body: str, task_id: str) -> str:
    """Write with an issue's text which task it was made of."""
    return f"{body}\n\n<!-- decklog: {task_id} -->".lstrip()


def unmarked(body: str) -> "tuple[str, str | None]":
    """Return an issue's text, and the task that it was made of here, if it was."""
    # Few have one, and to search for it takes as long as reading the issue.
    found = _MARK.search(body) if _MARK_START in body else None
    return (body[: found.start()], found[1]) if found else (body, None)


def needed_by(issue: "dict[str, Any]", name: str) -> "dict[str, str]":
    """Return what an issue is linked with, by name: what it waits for, and what it is a part of."""
    repository = name.rpartition("#")[0]
    said = (number for line in _NEEDS.findall(str(issue.get("body") or "")) for number in _NUMBER.findall(line))
    links = {f"{repository}#{number}": "blocks" for number in said}
    for one in _listed(issue.get("blocked_by")):
        links[name_of(plain_names(one), repository)] = "blocks"
    if isinstance(above := issue.get("parent"), dict) and "number" in above:
        links[name_of(plain_names(above), repository)] = "parent"
    return links


def _listed(value: object) -> "list[dict[str, Any]]":
    found = value.get("nodes") if isinstance(value, dict) else value
    return [one for one in found if isinstance(one, dict) and "number" in one] if isinstance(found, list) else []
