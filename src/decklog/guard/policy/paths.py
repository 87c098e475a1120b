"""Classes of paths: root, home, system, secret, inside the repository and so on."""

import posixpath
import re
from fnmatch import fnmatchcase

from decklog.guard.policy.policy import Policy
from decklog.guard.policy.words import UNKNOWN

_HOME = r"(/home/[^/]+|/root|/Users/[^/]+|/var/root|~[\w.-]*)(?=/|$)"
_WILD_PART = r"[*?.\[\]!^]*[*?][*?.\[\]!^]*"
_LISTS = ("harmless", "socket", "guard", "hooks", "ssh", "secret", "env", "sensitive", "startup", "git")
_PROCESS_VIEW = r"/+proc/[^/]+/(?:task/[^/]+/)?(root|cwd)(?:/|$)"
_PARENTS = r"\.\.(/\.\.)*"
_MOST_LINKS = 16


class Paths:
    """Classify paths for one root directory."""

    def __init__(self, policy: Policy, root: str | None) -> None:
        self.policy = policy
        self.root = posixpath.normpath(root) if root else None
        self.links: dict[str, str] = {}
        """Links that the script created, with their targets."""

    def link(self, name: str, target: str, cwd: str) -> None:
        """Record a link, so that a path through it is judged by its target."""
        place = self.locate(name, cwd)
        leads_to = self.locate(target, cwd if target.startswith(("/", "~")) else posixpath.dirname(place) or ".")
        if len(self.links) < _MOST_LINKS and leads_to != place:
            self.links[place] = leads_to

    def is_link(self, text: str, cwd: str) -> bool:
        """Return whether a path is a link that the script created."""
        return not text.endswith("/") and self.locate(text, cwd, follows=False) in self.links

    def locate(self, text: str, cwd: str, *, follows: bool = True) -> str:
        """Return a normalized path, relative to the root if inside, with the script's links resolved."""
        text = text.removeprefix("file://")
        if not text.startswith(("/", "~", UNKNOWN)) and cwd != ".":
            text = f"{cwd}/{text}"
        text = text.replace("/" + UNKNOWN, "/x")
        if text.startswith("~") and "/../" in text + "/":
            text = "/home/user" + text[1:]
        path = posixpath.normpath(text) if text else "."
        while found := re.match(_PROCESS_VIEW, path):
            # A process sees the same files from its own root and its own directory.
            path = posixpath.normpath(f"{'/' if found[1] == 'root' else cwd}/{path[found.end() :]}")
        path = self._relative("/" + path.lstrip("/") if path.startswith("//") else path)
        for _ in range(_MOST_LINKS if self.links and follows else 0):
            link = next((link for link in self.links if f"{path}/".startswith(f"{link}/")), None)
            if link is None:
                break
            path = self._relative(posixpath.normpath(self.links[link].rstrip("/") + path[len(link) :]) or "/")
        return path

    def _relative(self, path: str) -> str:
        """Return a path relative to the root if it lies inside, with a home as `~`."""
        if self.root:
            root = self.root.rstrip("/") + "/"
            if f"{path}/".startswith(root):
                return path[len(root) :] or "."
            if path != "/" and root.startswith(path.rstrip("/") + "/"):
                return ".."
        found = re.match(_HOME, path)
        return "~" + path[found.end() :] if found else path

    def classify(self, text: str, cwd: str = ".") -> str:
        """Return the class of a path."""
        path = self.locate(text, cwd)
        if path.startswith(UNKNOWN) or (UNKNOWN in path and "/" not in path and path.startswith("~")):
            return "unknown"
        # A pattern for everything in a directory is taken for the directory, an unknown ending for a child.
        while path not in ("/", ".") and re.fullmatch(_WILD_PART, path.rpartition("/")[2]):
            path = path.rpartition("/")[0] or ("/" if path.startswith("/") else ".")
        path = path.replace(UNKNOWN, "x")
        rest = path.lstrip("./")
        if path.startswith("../../../") and rest.split("/")[0] in self.policy.names["system"]:
            # A path that climbs far and goes down into a system directory.
            path = "/" + rest
        for name in _LISTS:
            if self.policy.globs(name).match(path):
                may_be_exempt = name in ("secret", "env", "ssh")
                if may_be_exempt and self.policy.globs("exempt").covers(path):
                    continue
                return ("vault" if path[0] in "/~" else "secret") if name in ("secret", "ssh") else name
        return self._place(path)

    def _place(self, path: str) -> str:
        """Return the class of a path by its location."""
        if path in ("/", "."):
            return "root" if path == "/" else "top"
        if re.fullmatch(_PARENTS, path):
            return "parent"
        if path.startswith("~"):
            return ("home", "home-part", "home-deep")[min(path.count("/"), 2)]
        if not path.startswith("/"):
            return "outside" if path.startswith("../") else "inside"
        if path.startswith("/dev/") and not path.startswith("/dev/shm/"):
            return "device"
        if path in self.policy.names["scratch_tops"]:
            return "scratch-top"
        if self.policy.globs("scratch").match(path):
            return "scratch"
        if path in ("/home", "/Users"):
            return "home"
        first = path.split("/")[1]
        is_system = path.count("/") == 1 or any(fnmatchcase(name, first) for name in self.policy.names["system"])
        return "system" if is_system else "outside"
