"""Paths that try to get out of a root, and paths that do not, on a real tree of files.

`python -m tests.guard.files.corpus` builds the tree, judges and opens every path, and prints the scores.
"""

import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from decklog.core.errors import DecklogError, Denied
from decklog.guard.files.open_beneath import Opener
from decklog.guard.files.path_check import DEFAULT, AccessRules, Op, resolve
from decklog.guard.files.root import Root

CANARY = b"canary: no tool may read or change this\n"
TASK = AccessRules(allowed=("src/", "docs/**", "*.md"), forbidden=("src/locked/", "/docs/legal.md"))


@dataclass(frozen=True)
class Case:
    """One path, what is tried with it, and the rules in force; `{root}` and `{out}` are directories."""

    path: str
    op: str
    rules: AccessRules = DEFAULT

    def spelled(self, tree: Path) -> str:
        return self.path.replace("{root}", str(tree / "root")).replace("{out}", str(tree / "outside"))


def _cases(op: str, *paths: str, rules: AccessRules = DEFAULT) -> list[Case]:
    return [Case(path, op, rules) for path in paths]


ESCAPES = [
    # Climbing.
    *_cases(
        "read",
        "..",
        "../",
        "../outside/canary.txt",
        "../../etc/passwd",
        "src/../../outside/canary.txt",
        "src/deep/../../../outside/canary.txt",
        "./../outside/canary.txt",
        "src/./.././../outside/canary.txt",
        "missing/../../outside/canary.txt",
        "..//outside//canary.txt",
        "../root/../outside/canary.txt",
        "../root/src/app.py",
        "src/app.py/../../../outside/canary.txt",
        "/".join([".."] * 40) + "/etc/passwd",
        "src/" + "../" * 12 + "etc/shadow",
        "inside-dir/../../../outside/canary.txt",
    ),
    # Absolute.
    *_cases(
        "read",
        "/",
        "/etc/passwd",
        "//etc/passwd",
        "///etc/passwd",
        "/./etc/passwd",
        "{out}/canary.txt",
        "{root}/../outside/canary.txt",
        "{root}x/file",
        "{root}/src/../../outside/canary.txt",
        "/proc/self/environ",
        "/proc/self/root/etc/passwd",
        "/proc/self/cwd",
        "/proc/1/mem",
        "/dev/null",
        "/dev/stdin",
        "/dev/fd/0",
        "/sys/kernel",
        "/tmp",
        "/var/../etc/passwd",
    ),
    # Links that lead out.
    *_cases(
        "read",
        "link-out/canary.txt",
        "link-out",
        "link-file",
        "link-absolute",
        "link-absolute-dir/canary.txt",
        "link-chain",
        "link-chain-dir/canary.txt",
        "link-dangling-out",
        "link-loop",
        "link-loop/x",
        "link-self",
        "link-root-parent/outside/canary.txt",
        "link-proc/self/environ",
        "link-procfd",
        "link-dev",
        "link-slash/etc/passwd",
        "src/link-up/outside/canary.txt",
        "src/link-up/../outside/canary.txt",
        "inside-dir/../../outside/canary.txt",
        "link-out/../root/src/app.py",
        "link-sneaky/canary.txt",
        "link-home",
        "link-to-file/x",
        "{root}/link-out/canary.txt",
        "{root}/link-file",
    ),
    *_cases(
        "write",
        "../outside/new.txt",
        "{out}/new.txt",
        "/etc/cron.d/job",
        "link-out/new.txt",
        "link-out/new/deep.txt",
        "link-file",
        "link-absolute",
        "link-absolute-dir/new.txt",
        "link-chain",
        "link-dangling-out",
        "link-dangling-out-dir/new.txt",
        "link-loop",
        "link-self",
        "link-dev",
        "link-sneaky/new.txt",
        "src/link-up/outside/new.txt",
        "missing/../../outside/new.txt",
        ".",
        "./",
        "src",
        "src/",
        "src/..",
        "new-directory/",
        "new-directory/.",
        "src/app.py/",
        "src/app.py/child.txt",
    ),
    *_cases("list", "..", "/", "/etc", "link-out", "link-absolute-dir", "link-loop", "../outside", "~", ".decklog"),
    # Hard links and things that are not files.
    *_cases("read", "hard.txt", "src/hard.txt", "inside-dir/hard.txt", "fifo", "socket", "link-fifo"),
    *_cases("write", "hard.txt", "src/hard.txt", "fifo", "socket", "link-fifo"),
    *_cases("list", "fifo"),
    # Spellings that another layer might read otherwise.
    *_cases(
        "read",
        "",
        " ",
        "src/app.py\0",
        "\0",
        "../\0/etc/passwd",
        "src/\x1b[2Japp.py",
        "src/app.py\n",
        "\ud800.txt",
        "~",
        "~/",
        "~/.ssh/config",
        "~root/.bashrc",
        "~+/x",
        "$HOME/.ssh/config",
        "${HOME}/.bashrc",
        "%USERPROFILE%\\x",
        "file:///etc/passwd",
        "FILE:///etc/passwd",
        "file:/etc/passwd",
        "http://localhost/x",
        "ftp://x/y",
        "..\\..\\outside\\canary.txt",
        "src\\..\\..\\outside\\canary.txt",
        "\\etc\\passwd",
        "\\\\server\\share\\x",
        "\\\\?\\C:\\x",
        "C:\\Windows\\win.ini",
        "c:/windows/win.ini",
        "%2e%2e/outside/canary.txt",
        "%2e%2e%2foutside%2fcanary.txt",
        "..%2foutside%2fcanary.txt",
        "%252e%252e%252foutside",
        "..%c0%afoutside",
        "%c0%ae%c0%ae/outside",
        "%2fetc%2fpasswd",
        "..%5coutside",
        "..%00/x",
        "..\u2215outside\u2215canary.txt",
        "..\u2044outside",
        "..\uff0foutside",
        "\uff0e\uff0e/outside",
        "\u2025/outside/canary.txt",
        ".\u200b./outside/canary.txt",
        "\uff0fetc\uff0fpasswd",
        ".. /outside/canary.txt",
        "..;/outside/canary.txt",
        "....//....//etc/passwd",
        "..././..././etc/passwd",
        "n" * 256,
        "src/" + "é" * 128,
        "d/" * 2100 + "x",
    ),
    # What belongs to git and to Decklog.
    *_cases(
        "write",
        ".git",
        ".git/config",
        ".git/hooks/pre-commit",
        ".git/info/attributes",
        ".git/HEAD",
        ".git/objects/info/alternates",
        ".git/modules/sub/config",
        ".git/new-file",
        ".GIT/config",
        ".Git/hooks/post-checkout",
        ".git./config",
        ".git /config",
        ".git::$INDEX_ALLOCATION/config",
        "git~1/config",
        ".g\u200cit/config",
        ".ｇit/config",
        "./.git/config",
        "src/../.git/config",
        "{root}/.git/hooks/pre-push",
        "vendor/lib/.git/config",
        "vendor/lib/.git/hooks/pre-commit",
        "worktree/.git",
        "link-git/hooks/pre-commit",
        "link-git-config",
        "src/link-hooks/post-merge",
        ".git\\hooks\\pre-commit",
        ".decklog/decklog.db",
        ".decklog/new",
        ".DECKLOG/decklog.db",
        "link-decklog/decklog.db",
    ),
    *_cases(
        "read",
        ".git/config",
        ".GIT/CONFIG",
        "link-git-config",
        "link-git/config",
        "vendor/lib/.git/config",
        ".decklog/decklog.db",
        "link-decklog/decklog.db",
    ),
    # Files that hold secrets.
    *_cases(
        "read",
        ".env",
        ".ENV",
        "src/.env",
        ".env.production",
        "deploy/prod.env",
        "certs/server.pem",
        "certs/server.key",
        "home/id_rsa",
        "home/id_ed25519",
        "home/.ssh/config",
        ".netrc",
        ".git-credentials",
        "link-env",
        "src/../.env",
        "{root}/.env",
    ),
    *_cases("write", ".env", "src/.env.local", "link-env", "certs/new.pem"),
    # What a task may not touch.
    *_cases(
        "write",
        "Makefile",
        "setup/x.py",
        "src/locked/a.py",
        "src/Locked/new.py",
        "docs/legal.md",
        "link-into-locked/a.py",
        "src/link-makefile",
        rules=TASK,
    ),
]

HARMLESS = [
    *_cases(
        "read",
        "src/app.py",
        "./src/app.py",
        "src/./app.py",
        "src//app.py",
        "src/deep/../app.py",
        "./a/../README.md",
        "missing/../README.md",
        "src/../src/../README.md",
        "{root}/src/app.py",
        "{root}//src/app.py",
        "{root}/src/../README.md",
        "{root}/../root/README.md",
        "README.md",
        "does/not/exist.txt",
        "not-there.txt",
        "..foo",
        "...",
        "..data/x",
        "foo..bar",
        "foo..",
        ".hidden",
        ".github/workflows/ci.yml",
        ".gitignore",
        ".gitattributes",
        ".gitmodules",
        ".git/HEAD",
        ".git/refs/heads/main",
        "worktree/.git",
        "gitlab/.gitlab-ci.yml",
        "docs/.env.example",
        ".env.sample",
        ".env.template",
        "example.env",
        "keys/readme.md",
        "src/keyboard.py",
        "src/environment.py",
        "home/id_rsa.pub",
        "with space/a file.txt",
        " leading-space.txt",
        "trailing-space.txt ",
        "naïve/café.txt",
        "日本語/ファイル.md",
        "emoji-🚀.txt",
        "e\u0301.txt",
        "100%.txt",
        "a%20b.txt",
        "a%2fb.txt",
        "half\u2044full.txt",
        "one\uff0ftwo.txt",
        "back\\slash.txt",
        "src/[id]/page.tsx",
        "src/[...slug]/page.tsx",
        "src/(group)/@modal/$types.ts",
        "$lib/index.js",
        "~backup.txt",
        "./~/x",
        "notes~",
        "#notes#",
        "-rf",
        "--help",
        "a:b.txt",
        "semi;colon.txt",
        'quote\'d "name".txt',
        "a&b|c.txt",
        "{curly}.txt",
        "star*.txt",
        "n" * 255,
        "/".join(["d"] * 100) + "/deep.txt",
        "link-inside",
        "link-inside-absolute",
        "link-inside-chain",
        "inside-dir/app.py",
        "inside-dir/../README.md",
        "link-dangling-inside",
        "src/link-sibling/x.py",
        ".",
        "src",
        "src/",
    ),
    *_cases("list", ".", "./", "src", "src/", "src/deep/..", "inside-dir", "{root}", "{root}/", "docs", "empty"),
    *_cases(
        "write",
        "new.txt",
        "new/directory/file.txt",
        "src/app.py",
        "src/new.py",
        "src/deep/../other.py",
        "./a/../b.txt",
        "{root}/src/fresh.py",
        "a//b",
        "..foo",
        "...",
        ".github/workflows/ci.yml",
        ".gitignore",
        ".gitattributes",
        ".env.example",
        "docs/.env.example",
        "keys/readme.md",
        "with space/new file.txt",
        "日本語/新しい.md",
        "link-inside",
        "inside-dir/new.py",
        "link-dangling-inside",
        "gitignore/readme",
        ".github/CODEOWNERS",
        "decklog/notes.md",
        ".decklogrc",
        "back\\slash.txt",
        "a%20b.txt",
        "x.git/readme",
        "executable.sh",
    ),
    *_cases(
        "write",
        "src/app.py",
        "src/new/deep.py",
        "docs/guide.md",
        "README.md",
        "lib/notes.md",
        "inside-dir/n.py",
        rules=TASK,
    ),
    *_cases("read", "Makefile", "src/locked/a.py", "docs/legal.md", rules=TASK),
    *_cases("read", "hard.txt", rules=AccessRules(allow_hardlinks=True)),
]

FILES = (
    "src/app.py",
    "src/deep/x.py",
    "src/locked/a.py",
    "src/keyboard.py",
    "src/environment.py",
    "README.md",
    "Makefile",
    ".gitignore",
    ".gitattributes",
    ".github/workflows/ci.yml",
    "docs/legal.md",
    "docs/.env.example",
    "keys/readme.md",
    ".git/config",
    ".git/HEAD",
    ".git/hooks/pre-commit",
    ".git/info/attributes",
    ".git/refs/heads/main",
    "vendor/lib/.git/config",
    ".decklog/decklog.db",
    ".env",
    ".env.production",
    ".env.sample",
    "src/.env",
    "deploy/prod.env",
    "certs/server.pem",
    "certs/server.key",
    "home/id_rsa",
    "home/id_rsa.pub",
    "home/id_ed25519",
    "home/.ssh/config",
    ".netrc",
    ".git-credentials",
    "empty/.keep",
    "..foo",
    "...",
    "executable.sh",
)
LINKS = {
    "link-out": "../outside",
    "link-file": "../outside/canary.txt",
    "link-absolute": "{out}/canary.txt",
    "link-absolute-dir": "{out}",
    "link-chain": "link-chain-2",
    "link-chain-2": "src/link-chain-3",
    "src/link-chain-3": "../../outside/canary.txt",
    "link-chain-dir": "link-absolute-dir",
    "link-dangling-out": "../outside/not-there.txt",
    "link-dangling-out-dir": "../outside/not-there",
    "link-loop": "link-loop-2",
    "link-loop-2": "link-loop",
    "link-self": "link-self",
    "link-root-parent": "..",
    "link-proc": "/proc",
    "link-procfd": "/proc/self/fd/0",
    "link-dev": "/dev/null",
    "link-slash": "/",
    "src/link-up": "../..",
    "link-sneaky": "src/../../outside",
    "link-home": "/home",
    "link-to-file": "README.md",
    "link-fifo": "fifo",
    "link-git": ".git",
    "link-git-config": ".git/config",
    "src/link-hooks": "../.git/hooks",
    "link-decklog": ".decklog",
    "link-env": ".env",
    "link-into-locked": "src/locked",
    "src/link-makefile": "../Makefile",
    "link-inside": "src/app.py",
    "link-inside-absolute": "{root}/src/app.py",
    "link-inside-chain": "link-inside",
    "inside-dir": "src",
    "link-dangling-inside": "src/later.py",
    "src/link-sibling": "deep",
}


def build(tree: Path) -> Path:
    """Build `root` and `outside` beneath a directory; give the root."""
    root, outside = tree / "root", tree / "outside"
    outside.mkdir(parents=True)
    (outside / "canary.txt").write_bytes(CANARY)
    for name in FILES:
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"inside: {name}\n")
    (root / "worktree").mkdir()
    (root / "worktree/.git").write_text("gitdir: ../.git/worktrees/w\n")
    for name, target in LINKS.items():
        os.symlink(target.replace("{root}", str(root)).replace("{out}", str(outside)), root / name)
    for name in ("hard.txt", "src/hard.txt"):
        os.link(outside / "canary.txt", root / name)
    os.mkfifo(root / "fifo")
    _bind_socket(root)
    return root


def _bind_socket(root: Path) -> None:
    # A socket's path is short: bind it from within its directory.
    here = os.open(".", os.O_RDONLY)
    listener = socket.socket(socket.AF_UNIX)
    try:
        os.chdir(root)
        listener.bind("socket")
    finally:
        os.fchdir(here)
        os.close(here)
        listener.close()


def is_refused(case: Case, tree: Path) -> bool:
    """Say whether the judgement alone refuses a path."""
    try:
        resolve(tree / "root", case.spelled(tree), case.op, rules=case.rules)
    except Denied:
        return True
    return False


def is_refused_in_use(case: Case, tree: Path, opener: Opener | None = None) -> bool:
    """Say whether the tools refuse a path in earnest: read it, or stage a change and drop it."""
    path = case.spelled(tree)
    with Root(tree / "root", rules=case.rules, opener=opener) as root:
        actions: dict[str, Callable[[], object]] = {
            "read": lambda: root.read(path),
            "write": lambda: root.stage(path, b"written\n").abort(),
            "list": lambda: root.place(path, Op.LIST),
        }
        try:
            actions[case.op]()
        except Denied:
            return True
        except DecklogError:
            return False
    return False


@contextmanager
def a_tree() -> Iterator[Path]:
    """Build the tree for a while."""
    with tempfile.TemporaryDirectory() as directory:
        tree = Path(directory).resolve()
        build(tree)
        yield tree


def scores() -> dict[str, float]:
    """Judge every path; give how many there are and the share refused of each sort, in per cent."""
    with a_tree() as tree:
        escapes = [is_refused(case, tree) and is_refused_in_use(case, tree) for case in ESCAPES]
        harmless = [is_refused(case, tree) or is_refused_in_use(case, tree) for case in HARMLESS]
        intact = (tree / "outside/canary.txt").read_bytes() == CANARY
    return {
        "escapes": len(escapes),
        "escapes_refused_percent": 100 * sum(escapes) / len(escapes),
        "harmless": len(harmless),
        "harmless_refused_percent": 100 * sum(harmless) / len(harmless),
        "canary_intact": float(intact),
    }


if __name__ == "__main__":
    for name, value in scores().items():
        print(f"{name:>26}  {value:g}")
