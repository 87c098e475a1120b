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
    "nul-byte": ("contains a NUL byte", "Remove the NUL byte."),
    "control-character": ("contains a control character", "Use a name without control characters."),
    "not-utf8": ("is not valid UTF-8", "Rename the file to a UTF-8 name first."),
    "too-long": ("is too long for the file system", "Use a shorter name."),
    "home": ("starts with a home directory, which is not expanded", "Write './~…' for a name that starts with ~."),
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
    "git": ("belongs to git itself", "Change it with a git command."),
    "git-credentials": ("may contain git credentials", "Read the setting with git config."),
    "decklog": ("belongs to Decklog's own record", "Use the decklog command."),
    "control": ("decides which programs git, an editor or an agent starts", "Ask the person to change it."),
    "secret": ("is a file that usually holds secrets", "Read a template of it, such as .env.example."),
    "forbidden": ("is in the task's forbidden paths", "Leave it, or ask for the task to be changed."),
    "not-allowed": ("is not in the task's allowed paths", "Stay within the allowed paths, or ask for more."),
    "permission": ("is not accessible to this user", "Check the owner and mode of the file."),
}

SLASHES = "\u2044\u2215\u29f8\u2571\uff0f\u29f5\ufe68\uff3c\u2216\\"
# Code points that some file systems leave out when they compare names.
IGNORABLE = (
    "\u00ad\u034f\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
    + "\u202a\u202b\u202c\u202d\u202e"
    + ("\u206a\u206b\u206c\u206d\u206e\u206f")
)
DECODED_CHARACTERS = str.maketrans(dict.fromkeys(SLASHES, "/") | dict.fromkeys(IGNORABLE, ""))
PLAIN_PATH = re.compile(r"(?!.*\.\.)[A-Za-z0-9_./@+=,\-][A-Za-z0-9_./ @+=,\-]*")
HOME = re.compile(r"~(?:[a-z_][a-z0-9_-]*|[+-]?\d*)(?:/|$)")
VARIABLE = re.compile(r"(?:\$[A-Z_][A-Z0-9_]*|\$\{\w+\}|%[A-Za-z_]+%)(?:[/\\]|$)")
URL = re.compile(r"(?:[a-z][a-z0-9+.-]*://|file:)", re.IGNORECASE)
DRIVE = re.compile(r"[A-Za-z]:[\\/]|\\\\|//[?.]/")
ESCAPED = re.compile(rb"%([0-9A-Fa-f]{2})")


def build_denial(rule: str, path: str, op: str = "", **details: object) -> Denied:
    """Build a Denied error with the path, the rule that matched, and a remedy."""
    reason, remedy = RULES[rule]
    shown = path if len(path) <= 200 else f"{path[:200]}…"
    shown = shown.encode("utf-8", "backslashreplace").decode()
    return Denied(f"{shown!r} {reason}", hint=remedy, rule=rule, path=shown, op=op, **details)


def split(path: str, root_paths: Sequence[str], op: str = "") -> list[str]:
    """Split a path into names beneath the root; raise Denied for a dangerous form.

    `root_paths` are the absolute spellings of the root. Empty names and `.` are dropped except at the end, where they mean a
    directory. `..` is kept: after a symbolic link, only the file system knows its target.
    """
    _check_form(path, op)
    parts = _parts_beneath(path, root_paths)
    if parts is None:
        raise build_denial("outside", path, op)
    if not PLAIN_PATH.fullmatch(path):
        _check_disguise(path, root_paths, op)
    if len(path) * 4 > LONGEST_NAME and any(len(part.encode()) > LONGEST_NAME for part in parts):
        raise build_denial("too-long", path, op)
    return [part for part in parts[:-1] if part not in ("", ".")] + parts[-1:]


def _check_form(path: str, op: str) -> None:
    if not path.strip():
        raise build_denial("empty", path, op)
    if PLAIN_PATH.fullmatch(path) and len(path) < LONGEST_NAME and not path.startswith("//"):
        return
    if "\0" in path:
        raise build_denial("nul-byte", path, op)
    if any(ord(char) < 32 or ord(char) == 127 for char in path):
        raise build_denial("control-character", path, op)
    if any("\ud800" <= char <= "\udfff" for char in path):
        raise build_denial("not-utf8", path, op)
    if len(path.encode()) >= LONGEST_PATH:
        raise build_denial("too-long", path, op)
    for rule, form in (("url", URL), ("home", HOME), ("variable", VARIABLE), ("drive", DRIVE)):
        if form.match(path):
            raise build_denial(rule, path, op)


def _parts_beneath(path: str, root_paths: Sequence[str]) -> list[str] | None:
    parts = path.split("/")
    if not path.startswith("/"):
        return None if _leaves_root(parts) else parts
    for home in root_paths:
        inner = _relative_parts(parts, home)
        if inner is not None and not _leaves_root(inner):
            return inner
        inner = _relative_parts(resolve_names(parts), home)
        if inner is not None:
            return inner
    return None


def _relative_parts(parts: list[str], home: str) -> list[str] | None:
    wanted = [part for part in home.split("/") if part]
    at = 0
    for name in wanted:
        while at < len(parts) and parts[at] in ("", "."):
            at += 1
        if at == len(parts) or parts[at] != name:
            return None
        at += 1
    return parts[at:] or ["."]


def resolve_names(parts: list[str]) -> list[str]:
    """Resolve the `.` and `..` of a path by its names alone."""
    flat: list[str] = []
    for part in parts:
        if part == "..":
            flat = flat[:-1]
        elif part not in ("", "."):
            flat.append(part)
    return flat


def _leaves_root(parts: list[str]) -> bool:
    depth = 0
    for part in parts:
        depth += -1 if part == ".." else part not in ("", ".")
        if depth < 0:
            return True
    return False


def _check_disguise(path: str, root_paths: Sequence[str], op: str) -> None:
    bare = decode_path(path)
    # The second reading is that of a filter that deletes `../` once; `....//` exploits such filters.
    for reading in (bare, bare.replace("../", "")):
        if reading == path:
            continue
        form = next((form for form in (URL, HOME, VARIABLE) if form.match(reading)), None)
        if form or "\0" in reading or _parts_beneath(reading, root_paths) is None:
            raise build_denial("disguised", path, op)


def decode_path(path: str) -> str:
    """Return the path as the most permissive decoder would read it."""
    for _ in range(3):
        path = _percent_decoded(path)
    path = unicodedata.normalize("NFKC", path.translate(DECODED_CHARACTERS)).translate(DECODED_CHARACTERS)
    # `..;` and `.. ` are `..` to some servers and file systems.
    return "/".join(".." if re.fullmatch(r"\s*\.\.\s*(;.*)?", part) else part for part in path.split("/"))


def _percent_decoded(path: str) -> str:
    if "%" not in path:
        return path
    raw = ESCAPED.sub(lambda found: bytes([int(found[1], 16)]), path.encode())
    # The two-byte forms of '.', '/' and '\' that a lax UTF-8 decoder accepts.
    raw = raw.replace(b"\xc0\xae", b".").replace(b"\xc0\xaf", b"/").replace(b"\xc1\x9c", b"/")
    return raw.decode("utf-8", "replace")


def normalize_name(name: str) -> str:
    """Return a name as the most permissive file system would compare it: `.GIT.` and `.git ` become `.git`."""
    if name.isascii() and name.isalnum():
        return name.lower()
    bare = unicodedata.normalize("NFKC", name.translate(DECODED_CHARACTERS)).casefold()
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
    """Operation of a tool on a path."""

    READ = "read"
    WRITE = "write"
    LIST = "list"


@cache
def _control() -> IgnoreFile:
    return IgnoreFile(control_files(), ignore_case=True)


def _normalized_names(path: str) -> list[str]:
    """Return the normalized names of a path; none if a quick check shows that none of them is protected."""
    if PLAIN_PATH.fullmatch(path):
        lowered = path.lower()
        # Normalizing does not change a plain ASCII path, apart from its case.
        if ".git" not in lowered and DECKLOG_NAME not in lowered:
            return []
        return [normalize_name(name) for name in path.split("/")]
    return [normalize_name(name) for name in decode_path(path).split("/")]


@dataclass(frozen=True, kw_only=True)
class AccessRules:
    """The paths that a tool may use, as globs like in a `.gitignore`, relative to the root.

    `allowed` and `forbidden` come from a task and restrict writing; an empty `allowed` allows everything. `secrets` restricts
    reading and writing. A file with several hard links is denied unless `allow_hardlinks`, because another link may be outside.
    """

    allowed: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    secrets: tuple[str, ...] = SECRETS
    allow_hardlinks: bool = False
    git_home: str | None = None

    def of_task(self, allowed: Iterable[str] = (), forbidden: Iterable[str] = ()) -> "AccessRules":
        """Return a copy of the rules with the globs of a task."""
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
        """Raise Denied if the rules forbid an operation on a path relative to the root."""
        names = _normalized_names(path)
        if DECKLOG_NAME in names:
            raise build_denial("decklog", path, op)
        if names or self.git_home is not None:
            self._judge_git(path, names, op)
        if op is Op.WRITE and _control().covers("/".join(map(normalize_name, decode_path(path).split("/")))):
            raise build_denial("control", path, op)
        if op is not Op.LIST and self._secrets.covers(path):
            raise build_denial("secret", path, op)
        if op is Op.WRITE and self.forbidden and self._forbidden.covers(path):
            raise build_denial("forbidden", path, op, forbidden=list(self.forbidden))

    def judge_allowed(self, path: str) -> None:
        """Raise Denied if the task does not allow writing to a path, which must have no links."""
        if self.allowed and not self._allowed.covers(path):
            raise build_denial("not-allowed", path, Op.WRITE, allowed=list(self.allowed))

    def _judge_git(self, path: str, names: list[str], op: Op) -> None:
        is_home = self.git_home is not None and f"{path}/".startswith(f"{self.git_home}/")
        is_git = is_home or not GIT_NAMES.isdisjoint(names)
        if is_git and op is Op.WRITE:
            raise build_denial("git", path, op)
        if is_git and op is Op.READ and normalize_name(path.rpartition("/")[2]) in GIT_CREDENTIALS:
            raise build_denial("git-credentials", path, op)

    def judge_file(self, path: str, op: Op, found: os.stat_result) -> None:
        """Raise Denied if an operation can't use this kind of file."""
        mode = found.st_mode
        if stat.S_ISDIR(mode):
            if op is Op.WRITE:
                raise build_denial("directory", path, op)
        elif not stat.S_ISREG(mode):
            raise build_denial("special-file", path, op)
        elif found.st_nlink > 1 and op is not Op.LIST and not self.allow_hardlinks:
            raise build_denial("hard-link", path, op, links=found.st_nlink)

    def may_read(self, path: str) -> bool:
        """Return whether the rules allow reading a path that a walk of the root found."""
        return not self._secrets.covers(path)
