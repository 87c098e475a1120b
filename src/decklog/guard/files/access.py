"""Rules for the files inside the root that a tool may read, list and write."""

import os
import re
import stat
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache, cached_property

from decklog.core.errors import Denied
from decklog.guard.files.gitignore import IgnoreFile
from decklog.guard.policy.policy import control_files

LONGEST_NAME = 255
LONGEST_PATH = 4096

RULES = {
    "empty": ("is empty", "Name a file inside the root, or '.' for the root itself."),
    "nul-byte": ("holds a NUL byte", "Leave the NUL byte out."),
    "control-character": ("holds a control character", "Use a name without control characters."),
    "not-utf8": ("is not valid UTF-8", "Rename the file to a UTF-8 name first."),
    "too-long": ("is longer than the file system takes", "Use a shorter name."),
    "home": ("starts with a home directory, which is not expanded", "Write './~…' for a name that starts so."),
    "variable": ("starts with a shell variable, which is not expanded", "Write the path out, from the root."),
    "url": ("is a URL", "Give the path of a file inside the root."),
    "drive": ("names a Windows drive or share", "Give a path relative to the root, with forward slashes."),
    "outside": ("lies outside the root", "Use a path that stays inside the root."),
    "disguised": ("leads outside the root once decoded", "Use the plain spelling of a path inside the root."),
    "symlink-out": ("goes through a link that leads out of the root", "Use a path that stays inside."),
    "symlink-loop": ("goes through links that lead to each other", "Remove the loop of links."),
    "symlink-race": ("became a link while it was being opened", "Try again when nothing else changes it."),
    "moved": ("was moved while it was being written", "Try again when nothing else changes it."),
    "hard-link": ("is a hard link: its bytes may belong to a file outside", "Copy it to a new file first."),
    "special-file": ("is neither a file nor a directory", "Only regular files can be read and written."),
    "not-a-directory": ("goes through a file as if it were a directory", "Check the path with list_files."),
    "directory": ("is a directory", "Name a file in it."),
    "git": ("belongs to git itself", "Let git change it, by a git command."),
    "git-credentials": ("may hold credentials of git", "Ask git for the one setting you need."),
    "decklog": ("belongs to Decklog's own record", "Use the decklog command."),
    "control": ("decides which programs git, an editor or an agent starts", "Ask the person to change it."),
    "secret": ("is a file that usually holds secrets", "Read a template of it, such as .env.example."),
    "forbidden": ("is in the task's forbidden paths", "Leave it, or ask for the task to be changed."),
    "not-allowed": ("is not in the task's allowed paths", "Stay within the allowed paths, or ask for more."),
    "permission": ("is not open to this user", "Check the owner and mode of the file."),
}

SLASHES = "\u2044\u2215\u29f8\u2571\uff0f\u29f5\ufe68\uff3c\u2216\\"
# Code points that some file systems leave out when they compare names.
IGNORABLE = (
    "\u00ad\u034f\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
    + "\u202a\u202b\u202c\u202d\u202e"
    + ("\u206a\u206b\u206c\u206d\u206e\u206f")
)
UNMASK = str.maketrans(dict.fromkeys(SLASHES, "/") | dict.fromkeys(IGNORABLE, ""))
HONEST = re.compile(r"(?!.*\.\.)[A-Za-z0-9_./@+=,\-][A-Za-z0-9_./ @+=,\-]*")
HOME = re.compile(r"~(?:[a-z_][a-z0-9_-]*|[+-]?\d*)(?:/|$)")
VARIABLE = re.compile(r"(?:\$[A-Z_][A-Z0-9_]*|\$\{\w+\}|%[A-Za-z_]+%)(?:[/\\]|$)")
URL = re.compile(r"(?:[a-z][a-z0-9+.-]*://|file:)", re.IGNORECASE)
DRIVE = re.compile(r"[A-Za-z]:[\\/]|\\\\|//[?.]/")
ESCAPED = re.compile(rb"%([0-9A-Fa-f]{2})")


def denied(rule: str, path: str, op: str = "", **details: object) -> Denied:
    """Build a refusal: the path, the rule that matched and what to do instead."""
    reason, remedy = RULES[rule]
    shown = path if len(path) <= 200 else f"{path[:200]}…"
    shown = shown.encode("utf-8", "backslashreplace").decode()
    return Denied(f"{shown!r} {reason}", hint=remedy, rule=rule, path=shown, op=op, **details)


def split(path: str, homes: Sequence[str], op: str = "") -> list[str]:
    """Split a path into names beneath the root, or refuse its spelling.

    `homes` are the absolute spellings of the root. Empty names and `.` are kept at the end only, where they
    claim that the thing before them is a directory; `..` is kept, since only the disk knows where it leads
    after a link.
    """
    _refuse_by_form(path, op)
    parts = _beneath(path, homes)
    if parts is None:
        raise denied("outside", path, op)
    if not HONEST.fullmatch(path):
        _refuse_disguise(path, homes, op)
    if len(path) * 4 > LONGEST_NAME and any(len(part.encode()) > LONGEST_NAME for part in parts):
        raise denied("too-long", path, op)
    return [part for part in parts[:-1] if part not in ("", ".")] + parts[-1:]


def _refuse_by_form(path: str, op: str) -> None:
    if not path.strip():
        raise denied("empty", path, op)
    if HONEST.fullmatch(path) and len(path) < LONGEST_NAME and not path.startswith("//"):
        return
    if "\0" in path:
        raise denied("nul-byte", path, op)
    if any(ord(char) < 32 or ord(char) == 127 for char in path):
        raise denied("control-character", path, op)
    if any("\ud800" <= char <= "\udfff" for char in path):
        raise denied("not-utf8", path, op)
    if len(path.encode()) >= LONGEST_PATH:
        raise denied("too-long", path, op)
    for rule, form in (("url", URL), ("home", HOME), ("variable", VARIABLE), ("drive", DRIVE)):
        if form.match(path):
            raise denied(rule, path, op)


def _beneath(path: str, homes: Sequence[str]) -> list[str] | None:
    parts = path.split("/")
    if not path.startswith("/"):
        return None if _climbs_out(parts) else parts
    for home in homes:
        inner = _after(parts, home)
        if inner is not None and not _climbs_out(inner):
            return inner
        inner = _after(flattened(parts), home)
        if inner is not None:
            return inner
    return None


def _after(parts: list[str], home: str) -> list[str] | None:
    wanted = [part for part in home.split("/") if part]
    at = 0
    for name in wanted:
        while at < len(parts) and parts[at] in ("", "."):
            at += 1
        if at == len(parts) or parts[at] != name:
            return None
        at += 1
    return parts[at:] or ["."]


def flattened(parts: list[str]) -> list[str]:
    """Resolve the `.` and `..` of a path by its names alone."""
    flat: list[str] = []
    for part in parts:
        if part == "..":
            flat = flat[:-1]
        elif part not in ("", "."):
            flat.append(part)
    return flat


def _climbs_out(parts: list[str]) -> bool:
    depth = 0
    for part in parts:
        depth += -1 if part == ".." else part not in ("", ".")
        if depth < 0:
            return True
    return False


def _refuse_disguise(path: str, homes: Sequence[str], op: str) -> None:
    bare = unmask(path)
    # The second reading is that of a filter that deletes `../` once, for which `....//` was invented.
    for reading in (bare, bare.replace("../", "")):
        if reading == path:
            continue
        form = next((form for form in (URL, HOME, VARIABLE) if form.match(reading)), None)
        if form or "\0" in reading or _beneath(reading, homes) is None:
            raise denied("disguised", path, op)


def unmask(path: str) -> str:
    """Return the path as the most obliging decoder would read it."""
    for _ in range(3):
        path = _percent_decoded(path)
    path = unicodedata.normalize("NFKC", path.translate(UNMASK)).translate(UNMASK)
    # `..;` and `.. ` are `..` to some servers and file systems.
    return "/".join(".." if re.fullmatch(r"\s*\.\.\s*(;.*)?", part) else part for part in path.split("/"))


def _percent_decoded(path: str) -> str:
    if "%" not in path:
        return path
    raw = ESCAPED.sub(lambda found: bytes([int(found[1], 16)]), path.encode())
    # The two-byte forms of '.', '/' and '\' that a lax UTF-8 decoder accepts.
    raw = raw.replace(b"\xc0\xae", b".").replace(b"\xc0\xaf", b"/").replace(b"\xc1\x9c", b"/")
    return raw.decode("utf-8", "replace")


def folded(name: str) -> str:
    """Return one name as the most forgiving file system would compare it: `.GIT.` and `.git ` are `.git`."""
    if name.isascii() and name.isalnum():
        return name.lower()
    bare = unicodedata.normalize("NFKC", name.translate(UNMASK)).casefold()
    return bare.split(":")[0].rstrip(". ") or bare


SECRETS = (
    ".env",
    ".env.*",
    "*.env",
    "!.env.example",
    "!.env.sample",
    "!.env.template",
    "!.env.dist",
    "!.env.defaults",
    "!example.env",
    "!sample.env",
    "!template.env",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "!id_*.pub",
    ".ssh/",
    ".gnupg/",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".pypirc",
    ".htpasswd",
    ".git-credentials",
    ".aws/credentials",
    ".docker/config.json",
)
GIT_NAMES = frozenset({".git", "git~1"})
GIT_CREDENTIALS = frozenset({"config", "config.worktree", "credentials"})
DECKLOG_NAME = ".decklog"


class Op(StrEnum):
    """What a tool wants to do with a path."""

    READ = "read"
    WRITE = "write"
    LIST = "list"


@cache
def _control() -> IgnoreFile:
    return IgnoreFile(control_files(), ignore_case=True)


def _folded_names(path: str) -> list[str]:
    """Return a path's names as a forgiving file system compares them; none if none can be guarded."""
    if HONEST.fullmatch(path):
        lowered = path.lower()
        # A plain ASCII path that spells none of the guarded names folds to none of them.
        if ".git" not in lowered and DECKLOG_NAME not in lowered:
            return []
        return [folded(name) for name in path.split("/")]
    return [folded(name) for name in unmask(path).split("/")]


@dataclass(frozen=True, kw_only=True)
class AccessRules:
    """The paths a tool may touch: globs as in a `.gitignore`, relative to the root.

    `allowed` and `forbidden` are a task's own and bind writing; no `allowed` means everything. `secrets`
    binds reading and writing. A file with more than one hard link is refused unless `allow_hardlinks`,
    because its other name may be outside of the root.
    """

    allowed: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    secrets: tuple[str, ...] = SECRETS
    allow_hardlinks: bool = False
    git_home: str | None = None

    def of_task(self, allowed: Iterable[str] = (), forbidden: Iterable[str] = ()) -> "AccessRules":
        """Return the same rules with a task's own globs."""
        return replace(self, allowed=tuple(allowed), forbidden=tuple(forbidden))

    @cached_property
    def _allowed(self) -> IgnoreFile:
        return IgnoreFile(self.allowed)

    @cached_property
    def _forbidden(self) -> IgnoreFile:
        return IgnoreFile(self.forbidden, ignore_case=True)

    @cached_property
    def _secrets(self) -> IgnoreFile:
        return IgnoreFile(self.secrets, ignore_case=True)

    def judge(self, path: str, op: Op) -> None:
        """Refuse a path, given relative to the root, that the rules keep from this operation."""
        names = _folded_names(path)
        if DECKLOG_NAME in names:
            raise denied("decklog", path, op)
        if names or self.git_home is not None:
            self._judge_git(path, names, op)
        if op is Op.WRITE and _control().covers("/".join(map(folded, unmask(path).split("/")))):
            raise denied("control", path, op)
        if op is not Op.LIST and self._secrets.covers(path):
            raise denied("secret", path, op)
        if op is Op.WRITE and self.forbidden and self._forbidden.covers(path):
            raise denied("forbidden", path, op, forbidden=list(self.forbidden))

    def judge_allowed(self, path: str) -> None:
        """Refuse to write where the task does not allow it; the path is the real place, free of links."""
        if self.allowed and not self._allowed.covers(path):
            raise denied("not-allowed", path, Op.WRITE, allowed=list(self.allowed))

    def _judge_git(self, path: str, names: list[str], op: Op) -> None:
        is_home = self.git_home is not None and f"{path}/".startswith(f"{self.git_home}/")
        is_git = is_home or not GIT_NAMES.isdisjoint(names)
        if is_git and op is Op.WRITE:
            raise denied("git", path, op)
        if is_git and op is Op.READ and folded(path.rpartition("/")[2]) in GIT_CREDENTIALS:
            raise denied("git-credentials", path, op)

    def judge_file(self, path: str, op: Op, found: os.stat_result) -> None:
        """Refuse a thing on disk that is not a file or directory this operation can use."""
        mode = found.st_mode
        if stat.S_ISDIR(mode):
            if op is Op.WRITE:
                raise denied("directory", path, op)
        elif not stat.S_ISREG(mode):
            raise denied("special-file", path, op)
        elif found.st_nlink > 1 and op is not Op.LIST and not self.allow_hardlinks:
            raise denied("hard-link", path, op, links=found.st_nlink)

    def may_read(self, path: str) -> bool:
        """Return whether the rules let this path be read; the path is one that a walk of the root gave."""
        return not self._secrets.covers(path)
