"""Choose the sandbox of a command: bubblewrap, else Landlock, else none. The record names it."""

import os
import shutil
import stat
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from decklog.core.errors import Invalid, Unavailable
from decklog.guard.sandbox import landlock, log_folder, mounts, seccomp
from decklog.guard.sandbox.landlock import AllowedPaths

_FILE, _DIRECTORY = stat.S_IROTH, stat.S_IROTH | stat.S_IXOTH
# How long what was found is believed: a look takes as long as a tenth of a command, and what others install comes seldom.
_BELIEVED_SECONDS = 5


@dataclass
class PrivateParts:
    """Files and directories of a tree: wholly public, private, or public with private parts in it."""

    public: list[str] = field(default_factory=list)
    mixed: list[str] = field(default_factory=list)
    private: list[str] = field(default_factory=list)


def parts_of(tree: str) -> PrivateParts:
    """Sort the files of a tree by who may read them. Links are left out: their targets are sorted in their own place."""
    return _parts_at(tree, int(time.monotonic() / _BELIEVED_SECONDS))


@lru_cache(maxsize=8)
def _parts_at(tree: str, _when: int) -> PrivateParts:
    parts = PrivateParts()
    _sort(tree, parts)
    return parts


def _sort(path: str, parts: PrivateParts) -> None:
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    needed = _DIRECTORY if stat.S_ISDIR(mode) else _FILE
    if mode & needed != needed:
        parts.private.append(path)
    elif not stat.S_ISDIR(mode):
        parts.public.append(path)
    else:
        _sort_directory(path, parts)


def _sort_directory(path: str, parts: PrivateParts) -> None:
    inner = PrivateParts()
    with os.scandir(path) as entries:
        found = [entry.path for entry in entries if not entry.is_symlink()]
    for one in found:
        _sort(one, inner)
    if inner.private:
        parts.mixed += [path, *inner.mixed]
        parts.public += inner.public
        parts.private += inner.private
    else:
        parts.public.append(path)


SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/run/current-system"),
    *("/run/systemd/resolve",),
)
_IN_SYSTEM = tuple(f"{path}/" for path in SYSTEM)
# The system's settings: some are for root alone, and root is who an agent may run as.
SETTINGS = "/etc"
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/pts", "/dev/ptmx")
OPEN_WORD = "no sandbox: the command can touch everything its user can"


class SandboxKind(StrEnum):
    """Kinds of sandboxes. `auto` takes the strongest that works here."""

    AUTO = "auto"
    BUBBLEWRAP = "bubblewrap"
    LANDLOCK = "landlock"
    NONE = "none"


@dataclass(frozen=True, kw_only=True)
class Sandbox:
    """What a command may use in addition to its root: further paths to read or to write, and the network."""

    kind: SandboxKind = SandboxKind.AUTO
    network: bool = True
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "kind", SandboxKind(self.kind))
        except ValueError:
            raise Invalid(f"{self.kind!r} is no kind of sandbox", hint=f"Use one of {', '.join(SandboxKind)}.") from None

    def settled(self) -> "Sandbox":
        """Return the same with a kind that works here; refuse one that was named and does not."""
        if self.kind is SandboxKind.AUTO:
            return replace(self, kind=best_kind())
        if self.kind is SandboxKind.BUBBLEWRAP and not has_bubblewrap():
            raise Unavailable("bubblewrap is not installed or can't run here", hint="Install bubblewrap, or use another kind.")
        if self.kind is SandboxKind.LANDLOCK and landlock.abi() == 0:
            raise Unavailable("this kernel offers no Landlock", hint="Use bubblewrap, or run elsewhere.")
        return self

    def report(self) -> dict[str, object]:
        """Describe for the record what confines the command, and what does not."""
        network = "shared" if self.network else "none"
        match self.kind:
            case SandboxKind.BUBBLEWRAP:
                return {"kind": self.kind.value, "network": network, "uncovered": []}
            case SandboxKind.LANDLOCK:
                gaps = landlock.uncovered(landlock.abi(), network=self.network)
                without = "none" if seccomp.is_available() else "no TCP" if landlock.abi() >= 4 else "shared"
                network = "shared" if self.network else without
                return {"kind": self.kind.value, "abi": landlock.abi(), "network": network, "uncovered": list(gaps)}
            case _:
                return {"kind": SandboxKind.NONE.value, "network": "shared", "note": OPEN_WORD}


@lru_cache(maxsize=1)
def best_kind() -> SandboxKind:
    """Choose the strongest kind that works here."""
    if has_bubblewrap():
        return SandboxKind.BUBBLEWRAP
    return SandboxKind.LANDLOCK if landlock.abi() > 0 else SandboxKind.NONE


@lru_cache(maxsize=1)
def has_bubblewrap() -> bool:
    """Return whether bubblewrap is installed and allowed to make its namespaces."""
    program = shutil.which("bwrap")
    if program is None:
        return False
    trial = [program, *_NAMESPACES, "--ro-bind", "/", "/", "--proc", "/proc", "true"]
    try:
        return subprocess.run(trial, capture_output=True, timeout=10, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


_NAMESPACES = (
    *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    *("--die-with-parent", "--new-session", "--cap-drop", "ALL"),
)


@dataclass(frozen=True)
class CommandContext:
    """Where a command runs: its root, a scratch directory, the environment it gets, and the file of the log it runs under."""

    root: str
    scratch: Path
    env: Mapping[str, str]
    log: str | None = None

    @property
    def home(self) -> Path:
        return self.scratch / "home"

    @property
    def temporary(self) -> Path:
        return self.scratch / "tmp"


def sandboxed_environment(site: CommandContext) -> dict[str, str]:
    """Set the home and temporary folders to the scratch directory; git keeps the user's configuration."""
    env = {**site.env, "HOME": str(site.home), "TMPDIR": str(site.temporary)}
    own = _git_configuration(site)
    return {**env, "GIT_CONFIG_GLOBAL": own} if own and "GIT_CONFIG_GLOBAL" not in env else env


def _git_configuration(site: CommandContext) -> str | None:
    path = os.path.join(site.env.get("HOME", "/nonexistent"), ".gitconfig")
    return path if os.path.isfile(path) else None


def ground_of(sandbox: Sandbox, site: CommandContext) -> AllowedPaths:
    """Work out all that a command may read and write."""
    readable = [path for path in (*SYSTEM, *_programs(site), *sandbox.readable) if os.path.exists(path)]
    if own := _git_configuration(site):
        readable.append(own)
    writable = [site.root, *_git_homes(site.root), str(site.home), str(site.temporary), *sandbox.writable]
    covered: tuple[str, ...] = ()
    if sandbox.kind is SandboxKind.LANDLOCK and not mounts.can_cover():
        log_folder.check_without_cover(site.root, site.log, writable)
    else:
        covered = log_folder.to_cover(site.root, site.log, writable)
    return AllowedPaths(tuple(dict.fromkeys(readable)), tuple(dict.fromkeys(writable)), sandbox.network, covered=covered)


@dataclass(frozen=True)
class Held:
    """A command in its sandbox: what is started, its environment, the paths it may use, and the report for the record."""

    argv: list[str]
    env: dict[str, str]
    ground: AllowedPaths | None
    report: dict[str, object]


def hold(sandbox: Sandbox, argv: list[str], site: CommandContext, cwd: str) -> Held:
    """Build the sandboxed form of a command for a settled kind; `cwd` is the folder that it runs in."""
    if sandbox.kind is SandboxKind.NONE:
        return Held(argv, dict(site.env), None, sandbox.report())
    for directory in (site.home, site.temporary):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    ground = ground_of(sandbox, site)
    report = report_on(sandbox, ground, site)
    inside = replace(site, env=sandboxed_environment(site))
    if sandbox.kind is SandboxKind.BUBBLEWRAP:
        return Held(wrapped(argv, ground, inside, cwd), dict(inside.env), None, report)
    return Held(argv, dict(inside.env), for_landlock(ground), report)


def report_on(sandbox: Sandbox, ground: AllowedPaths, site: CommandContext) -> dict[str, object]:
    """Describe for the record what confines a command, and whether the log's own folder is covered."""
    report = sandbox.report()
    if ground.covered:
        return {**report, "covered": list(ground.covered)}
    bare = [f"{folder}, which names the log" for folder in log_folder.folders_of(site.root, None)]
    open_ends = report["uncovered"]
    assert isinstance(open_ends, list)
    return {**report, "uncovered": [*open_ends, *bare]}


def for_landlock(ground: AllowedPaths) -> AllowedPaths:
    """Add what bubblewrap makes anew and Landlock has to let through."""
    settings = parts_of(SETTINGS)
    readable = [path for path in ground.readable if path != SETTINGS]
    return AllowedPaths(
        (*readable, *settings.public, "/proc", "/sys", *DEVICES),
        (*ground.writable, *DEVICES),
        ground.network,
        settings.mixed,
        ground.covered,
    )


def wrapped(argv: list[str], ground: AllowedPaths, site: CommandContext, cwd: str) -> list[str]:
    """Build the bubblewrap command line for a command."""
    words = ["bwrap", *_NAMESPACES]
    if not ground.network:
        words.append("--unshare-net")
    words += ["--proc", "/proc", "--dev", "/dev", "--bind", str(site.temporary), "/tmp"]
    for path in ground.readable:
        words += ["--ro-bind-try", path, path]
    for path in parts_of(SETTINGS).private:
        words += ["--tmpfs", path] if os.path.isdir(path) else ["--ro-bind", "/dev/null", path]
    for path in ground.writable:
        words += ["--bind-try", path, path]
    for path in ground.covered:
        # The record is not for the recorded to change.
        words += ["--tmpfs", path, "--remount-ro", path]
    return [*words, "--chdir", cwd, "--", *argv]


def _programs(site: CommandContext) -> list[str]:
    """Return the directories that the programs on PATH need, where they lie outside of the system's."""
    found: list[str] = []
    home = os.path.realpath(site.env.get("HOME", "/nonexistent"))
    for directory in dict.fromkeys(site.env.get("PATH", "").split(":")):
        if os.path.isabs(directory):
            needed = (directory, *map(os.path.dirname, _interpreters(directory)))
            found += [_prefix(one, home) for one in needed if not _is_system(one)]
    return [path for path in found if not _is_system(path) and path != "/"]


def _is_system(path: str) -> bool:
    return path.startswith(_IN_SYSTEM) or path in SYSTEM


def _interpreters(directory: str) -> list[str]:
    # A virtual environment's Python is a link to one that may lie anywhere.
    links = [f"{directory}/{name}" for name in ("python", "python3", "node")]
    return [os.path.realpath(link) for link in links if os.path.islink(link)]


def _prefix(directory: str, home: str) -> str:
    parent = os.path.dirname(directory.rstrip("/"))
    is_prefix = os.path.basename(directory.rstrip("/")) == "bin" and os.path.realpath(parent) not in (home, "/")
    return parent if is_prefix else directory


def _git_homes(root: str) -> list[str]:
    """Return the directories of git that a linked worktree needs outside of its root."""
    pointer = Path(root, ".git")
    if not pointer.is_file():
        return []
    target = Path(root, pointer.read_text(encoding="utf-8", errors="replace").removeprefix("gitdir:").strip())
    common = target / "commondir"
    shared = Path(target, common.read_text(encoding="utf-8").strip()) if common.is_file() else target
    return [os.path.realpath(path) for path in (target, shared) if path.is_dir()]
