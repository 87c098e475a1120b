"""Classes of paths: what a path means to the person whose machine and repository this is."""

import posixpath
import re
from fnmatch import fnmatchcase

from decklog.guard.policy.policy import Policy
from decklog.guard.policy.shell.words import UNKNOWN

_HOME = re.compile(r"(/home/[^/]+|/root|/Users/[^/]+|/var/root|~[\w.-]*)(?=/|$)")
_WILD_PART = re.compile(r"[*?.\[\]!^]*[*?][*?.\[\]!^]*")
_NAMED = ("harmless", "socket", "guard", "hooks", "ssh", "secret", "env", "sensitive", "startup", "git")
_PROCESS_VIEW = re.compile(r"/+proc/[^/]+/(?:task/[^/]+/)?(root|cwd)(?:/|$)")
_RUN_ENDINGS = (".mk", ".config.js", ".config.ts", ".config.mjs", ".config.cjs", ".config.mts")
_GLOB = re.compile(r"[*?\[]")
_MOST_LINKS = 16


def normalise(text: str, cwd: str = ".") -> str:
    """Give a path without detours, from where the script stands, a home directory written as `~`."""
    if text.startswith("file://"):
        text = text[7:]
    if not text.startswith(("/", "~", UNKNOWN)):
        text = f"{cwd}/{text}" if cwd != "." else text
    if UNKNOWN in text:
        text = text.replace("/" + UNKNOWN, "/x")
    if text.startswith("~") and "/../" in text + "/":
        text = "/home/user" + text[1:]
    path = posixpath.normpath(text) if text else "."
    while found := _PROCESS_VIEW.match(path):
        # A process sees the same files from its own root and its own directory.
        path = posixpath.normpath(f"{'/' if found[1] == 'root' else cwd}/{path[found.end() :]}")
    return "/" + path.lstrip("/") if path.startswith("//") else path


class Paths:
    """Classify paths for one root directory."""

    def __init__(self, policy: Policy, root: str | None) -> None:
        self.policy = policy
        self.root = posixpath.normpath(root) if root else None
        self._links: dict[str, str] = {}
        """Links that the script has made, with where they lead."""

    def link(self, name: str, target: str, cwd: str) -> None:
        """Remember a link, so that a path through it is judged by where it leads."""
        place = self.locate(name, cwd)
        leads_to = self.locate(target, cwd if target.startswith(("/", "~")) else posixpath.dirname(place) or ".")
        if len(self._links) < _MOST_LINKS and leads_to != place:
            self._links[place] = leads_to

    def is_link(self, text: str, cwd: str) -> bool:
        """Tell whether a path is a link of the script itself, and not something behind it."""
        return bool(self._links) and not text.endswith("/") and self._written(normalise(text, cwd)) in self._links

    def locate(self, text: str, cwd: str) -> str:
        """Normalise a path and write it relative to the root if it lies inside; links of the script are followed."""
        path = self._written(normalise(text, cwd))
        for _ in range(_MOST_LINKS if self._links else 0):
            link = next((link for link in self._links if f"{path}/".startswith(f"{link}/")), None)
            if link is None:
                break
            path = self._written(posixpath.normpath(self._links[link].rstrip("/") + path[len(link) :]) or "/")
        return path

    def _written(self, path: str) -> str:
        """Write a normalised path relative to the root if it lies inside, and a home as `~`."""
        if self.root and path == self.root:
            return "."
        if self.root and path.startswith(self.root.rstrip("/") + "/"):
            return path[len(self.root.rstrip("/")) + 1 :]
        if self.root and self.root.startswith(path.rstrip("/") + "/") and path != "/":
            return ".."
        return _HOME.sub("~", path, count=1) if _HOME.match(path) else path

    def classify(self, text: str, cwd: str = ".") -> str:
        """Give the class of a path: root, home, top, system, secret, guard, scratch, inside, outside ..."""
        path = self.locate(text, cwd)
        if path.startswith(UNKNOWN) or (UNKNOWN in path and "/" not in path and path.startswith("~")):
            return "unknown"
        path = self._from_root(_shorten(path))
        for name in _NAMED:
            if self.policy.globs[name].match(path) and not self._is_exempt(name, path):
                is_secret = name in ("secret", "ssh")
                return ("vault" if path[0] in "/~" else "secret") if is_secret else name
        return self._place(path)

    def is_run_by_tools(self, path: str) -> bool:
        """Tell whether a build tool, a test runner or a shell runs a file of this name by its nature."""
        name = path.rsplit("/", 1)[-1].lower()
        return name in self.policy.names["run_by_tools"] or name.endswith(_RUN_ENDINGS)

    def _from_root(self, path: str) -> str:
        """Take a path that climbs far and goes down into a system directory for the one at the root of the machine."""
        if not path.startswith("../../../"):
            return path
        rest = path.lstrip("./")
        return "/" + rest if rest.split("/")[0] in self.policy.names["system"] else path

    def _is_exempt(self, name: str, path: str) -> bool:
        """Tell whether a path only looks like a file of secrets."""
        return name in ("secret", "env", "ssh") and self.policy.globs["exempt"].covers(path)

    def _place(self, path: str) -> str:
        """Classify by where a path lies."""
        if path == "/":
            return "root"
        if path in (".", "..") or re.fullmatch(r"\.\.(/\.\.)*", path):
            return "top" if path == "." else "parent"
        if path.startswith("~"):
            return self._home_place(path)
        if not path.startswith("/"):
            return "outside" if path.startswith("../") else "inside"
        return self._absolute_place(path)

    def _home_place(self, path: str) -> str:
        """Classify a path below a home directory."""
        if path.count("/") == 0:
            return "home"
        return "home-part" if path.count("/") == 1 else "home-deep"

    def _absolute_place(self, path: str) -> str:
        """Classify an absolute path that is not in the root or a home."""
        globs = self.policy.globs
        if path.startswith("/dev/") and not path.startswith("/dev/shm/"):
            return "device"
        if path in self.policy.names["scratch_tops"]:
            return "scratch-top"
        if globs["scratch"].match(path):
            return "scratch"
        if path in ("/home", "/Users"):
            return "home"
        if path.count("/") == 1:
            return "system"
        first = path.split("/")[1]
        if _GLOB.search(first):
            return "system" if any(fnmatchcase(name, first) for name in self.policy.names["system"]) else "outside"
        return "system" if first in self.policy.names["system"] else "outside"


def _shorten(path: str) -> str:
    """Take a pattern for everything in a directory for the directory, an unknown ending for a child."""
    while True:
        head, _, last = path.rpartition("/")
        if not _WILD_PART.fullmatch(last):
            break
        path = head or ("/" if path.startswith("/") else ".")
        if path in ("/", "."):
            break
    return path.replace(UNKNOWN, "x") if UNKNOWN in path else path
