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
# How long a scan of a tree is cached: a scan takes a tenth of the time of a command, and its result rarely changes.
_CACHE_SECONDS = 5


@dataclass
class SortedPaths:
    """Paths of a tree by who may read them: everybody, everybody except for parts below, or not everybody."""

    public: list[str] = field(default_factory=list)
    mixed: list[str] = field(default_factory=list)
    private: list[str] = field(default_factory=list)


def sort_by_privacy(tree: str) -> SortedPaths:
    """Sort the paths of a tree by who may read them. Symbolic links are skipped: only their targets count."""
    return _sort_tree(tree, int(time.monotonic() / _CACHE_SECONDS))


@lru_cache(maxsize=8)
def _sort_tree(tree: str, _period: int) -> SortedPaths:
    parts = SortedPaths()
    _sort(tree, parts)
    return parts


def _sort(path: str, parts: SortedPaths) -> None:
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


def _sort_directory(path: str, parts: SortedPaths) -> None:
    inner = SortedPaths()
    with os.scandir(path) as entries:
        found = [entry.path for entry in entries if not entry.is_symlink()]
    for each in found:
        _sort(each, inner)
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
# Some of the system's settings are readable by root only, and an agent may run as root.
SETTINGS = "/etc"
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/pts", "/dev/ptmx")
NO_SANDBOX_NOTE = "no sandbox: the command can access everything that its user can"


class SandboxKind(StrEnum):
    """Kinds of sandboxes. `auto` selects the strongest one that this machine supports."""

    AUTO = "auto"
    BUBBLEWRAP = "bubblewrap"
    LANDLOCK = "landlock"
    NONE = "none"


@dataclass(frozen=True, kw_only=True)
class Sandbox:
    """Permissions of a command beyond its root: readable paths, writable paths, and the network."""

    kind: SandboxKind = SandboxKind.AUTO
    network: bool = True
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "kind", SandboxKind(self.kind))
        except ValueError:
            raise Invalid(f"{self.kind!r} is not a kind of sandbox", hint=f"Use one of {', '.join(SandboxKind)}.") from None

    def resolve_kind(self) -> "Sandbox":
        """Return a copy with the strongest supported kind for `auto`; raise Unavailable for an unsupported kind."""
        if self.kind is SandboxKind.AUTO:
            return replace(self, kind=best_kind())
        if self.kind is SandboxKind.BUBBLEWRAP and not has_bubblewrap():
            raise Unavailable("bubblewrap is not installed or can't run here", hint="Install bubblewrap, or use another kind.")
        if self.kind is SandboxKind.LANDLOCK and landlock.abi_version() == 0:
            raise Unavailable("this kernel offers no Landlock", hint="Use bubblewrap, or run elsewhere.")
        return self

    def report(self) -> dict[str, object]:
        """Return the sandbox's kind, its network access and its known gaps, for the record."""
        network = "shared" if self.network else "none"
        match self.kind:
            case SandboxKind.BUBBLEWRAP:
                return {"kind": self.kind.value, "network": network, "uncovered": []}
            case SandboxKind.LANDLOCK:
                gaps = landlock.find_gaps(landlock.abi_version(), network=self.network)
                without = "none" if seccomp.is_available() else "no TCP" if landlock.abi_version() >= 4 else "shared"
                network = "shared" if self.network else without
                return {"kind": self.kind.value, "abi": landlock.abi_version(), "network": network, "uncovered": list(gaps)}
            case _:
                return {"kind": SandboxKind.NONE.value, "network": "shared", "note": NO_SANDBOX_NOTE}


@lru_cache(maxsize=1)
def best_kind() -> SandboxKind:
    """Return the strongest kind that this machine supports."""
    if has_bubblewrap():
        return SandboxKind.BUBBLEWRAP
    return SandboxKind.LANDLOCK if landlock.abi_version() > 0 else SandboxKind.NONE


@lru_cache(maxsize=1)
def has_bubblewrap() -> bool:
    """Return whether bubblewrap is installed and may create its namespaces."""
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
    """Context of a command: its root, a scratch directory, its environment, and the file of the log that records it."""

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


def sandboxed_environment(context: CommandContext) -> dict[str, str]:
    """Set the home and temporary folders to the scratch directory; git keeps the user's configuration."""
    env = {**context.env, "HOME": str(context.home), "TMPDIR": str(context.temporary)}
    git_configuration = _git_configuration(context)
    return {**env, "GIT_CONFIG_GLOBAL": git_configuration} if git_configuration and "GIT_CONFIG_GLOBAL" not in env else env


def _git_configuration(context: CommandContext) -> str | None:
    path = os.path.join(context.env.get("HOME", "/nonexistent"), ".gitconfig")
    return path if os.path.isfile(path) else None


def find_allowed_paths(sandbox: Sandbox, context: CommandContext) -> AllowedPaths:
    """Return all paths that a command may read or write."""
    readable = [path for path in (*SYSTEM, *_program_directories(context), *sandbox.readable) if os.path.exists(path)]
    if git_configuration := _git_configuration(context):
        readable.append(git_configuration)
    writable = [context.root, *_git_directories(context.root), str(context.home), str(context.temporary), *sandbox.writable]
    covered: tuple[str, ...] = ()
    if sandbox.kind is SandboxKind.LANDLOCK and not mounts.can_cover():
        log_folder.check_without_cover(context.root, context.log, writable)
    else:
        covered = log_folder.find_folders_to_cover(context.root, context.log, writable)
    return AllowedPaths(tuple(dict.fromkeys(readable)), tuple(dict.fromkeys(writable)), sandbox.network, covered=covered)


@dataclass(frozen=True)
class SandboxedCommand:
    """A command as it is started in its sandbox. Landlock enforces `allowed_paths`; bubblewrap has them in its arguments."""

    argv: list[str]
    env: dict[str, str]
    allowed_paths: AllowedPaths | None
    report: dict[str, object]


def apply_sandbox(sandbox: Sandbox, argv: list[str], context: CommandContext, cwd: str) -> SandboxedCommand:
    """Build the sandboxed form of a command. The sandbox's kind must be resolved; `cwd` is the working directory."""
    if sandbox.kind is SandboxKind.NONE:
        return SandboxedCommand(argv, dict(context.env), None, sandbox.report())
    for directory in (context.home, context.temporary):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    paths = find_allowed_paths(sandbox, context)
    report = build_report(sandbox, paths, context)
    inside = replace(context, env=sandboxed_environment(context))
    if sandbox.kind is SandboxKind.BUBBLEWRAP:
        return SandboxedCommand(build_bubblewrap_command(argv, paths, inside, cwd), dict(inside.env), None, report)
    return SandboxedCommand(argv, dict(inside.env), add_landlock_paths(paths), report)


def build_report(sandbox: Sandbox, paths: AllowedPaths, context: CommandContext) -> dict[str, object]:
    """Return the sandbox's report, and whether the log's folder is hidden from the command."""
    report = sandbox.report()
    if paths.covered:
        return {**report, "covered": list(paths.covered)}
    exposed = [f"{folder}, which names the log" for folder in log_folder.find_log_folders(context.root, None)]
    gaps = report["uncovered"]
    assert isinstance(gaps, list)
    return {**report, "uncovered": [*gaps, *exposed]}


def add_landlock_paths(paths: AllowedPaths) -> AllowedPaths:
    """Add the devices and process files that bubblewrap creates itself and Landlock must allow."""
    settings = sort_by_privacy(SETTINGS)
    readable = [path for path in paths.readable if path != SETTINGS]
    return AllowedPaths(
        (*readable, *settings.public, "/proc", "/sys", *DEVICES),
        (*paths.writable, *DEVICES),
        paths.network,
        settings.mixed,
        paths.covered,
    )


def build_bubblewrap_command(argv: list[str], paths: AllowedPaths, context: CommandContext, cwd: str) -> list[str]:
    """Build the bubblewrap command line for a command."""
    words = ["bwrap", *_NAMESPACES]
    if not paths.network:
        words.append("--unshare-net")
    words += ["--proc", "/proc", "--dev", "/dev", "--bind", str(context.temporary), "/tmp"]
    for path in paths.readable:
        words += ["--ro-bind-try", path, path]
    for path in sort_by_privacy(SETTINGS).private:
        words += ["--tmpfs", path] if os.path.isdir(path) else ["--ro-bind", "/dev/null", path]
    for path in paths.writable:
        words += ["--bind-try", path, path]
    for path in paths.covered:
        # A recorded command must not change its own record.
        words += ["--tmpfs", path, "--remount-ro", path]
    return [*words, "--chdir", cwd, "--", *argv]


def _program_directories(context: CommandContext) -> list[str]:
    """Return the directories outside of the system's that the programs on PATH need."""
    found: list[str] = []
    home = os.path.realpath(context.env.get("HOME", "/nonexistent"))
    for directory in dict.fromkeys(context.env.get("PATH", "").split(":")):
        if os.path.isabs(directory):
            needed = (directory, *map(os.path.dirname, _interpreters(directory)))
            found += [_installation_directory(each, home) for each in needed if not _is_system(each)]
    return [path for path in found if not _is_system(path) and path != "/"]


def _is_system(path: str) -> bool:
    return path.startswith(_IN_SYSTEM) or path in SYSTEM


def _interpreters(directory: str) -> list[str]:
    # A virtual environment's Python is a link to an interpreter in any directory.
    links = [f"{directory}/{name}" for name in ("python", "python3", "node")]
    return [os.path.realpath(link) for link in links if os.path.islink(link)]


def _installation_directory(directory: str, home: str) -> str:
    parent = os.path.dirname(directory.rstrip("/"))
    is_prefix = os.path.basename(directory.rstrip("/")) == "bin" and os.path.realpath(parent) not in (home, "/")
    return parent if is_prefix else directory


def _git_directories(root: str) -> list[str]:
    """Return the git directories outside of its root that a linked worktree needs."""
    pointer = Path(root, ".git")
    if not pointer.is_file():
        return []
    target = Path(root, pointer.read_text(encoding="utf-8", errors="replace").removeprefix("gitdir:").strip())
    common = target / "commondir"
    shared = Path(target, common.read_text(encoding="utf-8").strip()) if common.is_file() else target
    return [os.path.realpath(path) for path in (target, shared) if path.is_dir()]
