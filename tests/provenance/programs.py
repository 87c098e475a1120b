"""Random programs of edits and git commands, and a model that knows who wrote each line.

Every line that is ever written is unique, so the model is a table from a line's text to its writer. It never reads what Decklog
answers.
"""

import difflib
import random
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from decklog import Decklog
from decklog.provenance.attribution import Origin
from decklog.provenance.blame import blame_file
from decklog.provenance.capture import Capture
from decklog.provenance.recording import keep_objects, record_captured
from decklog.provenance.tool_calls import FileCall
from tests.provenance.repositories import GitFolder
from tests.provenance.sessions import attribute_blob

AGENTS = ("claude:1", "codex:2")
PERSON = "Ana <ana@example.invalid>"
FILES = ("one.txt", "two.txt", "sub/three.txt")
_MARKERS = ("<<<<<<<", "=======", ">>>>>>>", "|||||||")
# A conflict that was there already within one of a rename.
_INNER_MARKER = re.compile(r"(<{8}|={8}|>{8}|\|{8})")


class Mismatch(AssertionError):
    """A line has another origin than the model expects."""


class Program:
    """A repository, a log, and the model; each method is one kind of step."""

    def __init__(self, seed: int, folder: Path, log: Decklog) -> None:
        self.random = random.Random(seed)
        self.main = GitFolder(folder / "repository")
        self.folder = self.main
        self.log = log
        self.steps: list[str] = []
        # The writer of each line: a session, several sessions joined by a blank, a person, or unknown.
        self.writers: dict[str, str] = {}
        self._calls = 0
        # Files that were renamed since the last commit, and the lines of those that changed too much for `git diff -M`.
        self._renamed: set[str] = set()
        self.hidden: set[str] = set()
        # The session whose command is under way around a step.
        self._around: str | None = None
        for path in FILES[:2]:
            self.folder.write(path, *(self.line("unknown") for _ in range(6)))
        self.folder.commit("first")

    # Lines

    def line(self, writer: str) -> str:
        # As long as git requires of a line that it finds again by its text.
        text = f"line {len(self.writers)} {self.random.choice(('red', 'green', 'blue'))} in a generated file"
        is_mixed = writer in AGENTS and self._around not in (None, writer)
        self.writers[text] = " ".join(AGENTS) if is_mixed else writer
        return text

    def read(self, path: str) -> list[str]:
        return (self.folder.folder / path).read_text().splitlines()

    def paths(self) -> list[str]:
        return [path for path in FILES if (self.folder.folder / path).is_file()]

    def changed(self, lines: list[str], writer: str) -> list[str]:
        """Return lines with some inserted, some replaced, some removed."""
        found = list(lines)
        for _ in range(self.random.randint(1, 3)):
            place = self.random.randint(0, len(found))
            kind = self.random.choice(("insert", "insert", "replace", "remove"))
            if kind == "insert" or not found:
                found[place:place] = [self.line(writer) for _ in range(self.random.randint(1, 2))]
            elif kind == "replace":
                found[place : place + 1] = [self.line(writer)]
            elif len(found) > 3:
                del found[place : place + 1]
        return found

    def some_path(self) -> str:
        return self.random.choice(self.paths() or [FILES[0]])

    def lines_of(self, path: str) -> list[str]:
        return self.read(path) if (self.folder.folder / path).is_file() else []

    # Writers

    def capture(self, session: str) -> Capture:
        return Capture(self.folder.repository, session)

    def record(self, session: str, captured: dict[str, object] | None, kind: str) -> None:
        if captured is None:
            return
        if session == PERSON:
            record_captured(self.log, captured, person=PERSON, kind="person", call_id=f"c{self._calls}")
        else:
            record_captured(self.log, captured, session=session, kind=kind, call_id=f"c{self._calls}")
        keep_objects(session, [captured])

    def tool(self) -> str:
        """Have an agent or a known person change a file by a tool that names it."""
        writer = self.random.choice((*AGENTS, PERSON))
        path = self.random.choice(FILES) if self.random.random() < 0.2 else self.some_path()
        lines = self.lines_of(path)
        once = [line for line in lines if lines.count(line) == 1]
        if once and self.random.random() < 0.5:
            old = self.random.choice(once)
            new = "\n".join([*([old] if self.random.random() < 0.5 else []), self.line(writer)])
            content = "".join(f"{line}\n" for line in lines).replace(f"{old}\n", f"{new}\n")
            self.write_by_tool(writer, path, content, old_string=f"{old}\n", new_string=f"{new}\n")
            return f"{writer} edits {path}"
        self.write_by_tool(writer, path, "".join(f"{line}\n" for line in self.changed(lines, writer)))
        return f"{writer} writes {path}"

    def write_by_tool(self, writer: str, path: str, content: str, **arguments: str) -> None:
        self._calls += 1
        call, name = FileCall([path], arguments or {"content": content}), f"c{self._calls}"
        capture = self.capture(writer)
        capture.begin(name, call)
        self.folder.write(path, *content.splitlines())
        self.record(writer, capture.end(name, call), "tool")

    @contextmanager
    def shell(self, writer: str) -> Iterator[None]:
        self._calls += 1
        name, capture = f"c{self._calls}", self.capture(writer)
        capture.begin(name, None)
        yield
        self.record(writer, capture.end(name, None), "shell")

    def command(self) -> str:
        """Have an agent change several files by a command."""
        writer = self.random.choice(AGENTS)
        with self.shell(writer):
            for path in self.random.sample(FILES, self.random.randint(1, 2)):
                self.folder.write(path, *self.changed(self.lines_of(path), writer))
        return f"{writer} runs a command"

    def git_and_write(self) -> str:
        """Have one command of an agent bring content back or in by git, change files, and maybe commit them."""
        writer, name, path = self.random.choice(AGENTS), self.other_branch(), self.some_path()
        kind = self.random.choice(("switch", "squash", "pick", "stash", "restore"))
        if self.random.random() < 0.7:
            self.clean()
        if kind == "stash":
            self.random.choice((self.tool, self.stranger))()
            self.git("stash", "push", "-q", "--include-untracked")
        commands = {
            "switch": ("checkout", "-q", name),
            "squash": ("merge", "-q", "--squash", name),
            "pick": ("cherry-pick", "-n", name),
            "stash": ("stash", "pop", "-q"),
            "restore": ("checkout", "-q", name, "--", path),
        }
        with self.shell(writer):
            self.git(*commands[kind])
            if self.unmerged():
                self.git("reset", "-q", "--hard")
            self.change_and_commit(writer)
        return f"{writer} runs a command with {kind} {name}"

    def change_and_commit(self, writer: str) -> None:
        """Change a file up to three times, with commits between, and maybe leave the branch."""
        for _ in range(self.random.randint(1, 3)):
            path = self.some_path()
            self.folder.write(path, *self.changed(self.lines_of(path), writer))
            if self.random.random() < 0.5:
                self.random.choice((self.commit, self.commit, self.amend, self.stage_partly))()
        if self.random.random() < 0.2:
            self.git("checkout", "-q", self.other_branch())

    def formatter(self) -> str:
        """Have an agent or somebody else format a file: a formatted line is a new one."""
        writer, path = self.random.choice((*AGENTS, "unknown")), self.some_path()
        lines = [self.line(writer) if self.random.random() < 0.4 else line for line in self.lines_of(path)]
        with self.shell(writer) if writer in AGENTS else nullcontext():
            self.folder.write(path, *lines)
        return f"{writer} formats {path}"

    def two_at_once(self) -> str:
        """Have both agents change one file at the same time."""
        first, second = self.random.sample(AGENTS, 2)
        path, both = self.some_path(), " ".join(AGENTS)
        with self.shell(first):
            content = "".join(f"{line}\n" for line in self.changed(self.lines_of(path), both))
            self.write_by_tool(second, path, content)
        return f"{first} and {second} write {path}"

    def stranger(self) -> str:
        path = self.some_path()
        self.folder.write(path, *self.changed(self.lines_of(path), "unknown"))
        return f"somebody writes {path}"

    # Git, by a person or within a command of an agent

    def git(self, *words: str, **more: str) -> bool:
        try:
            self.folder.git(*words, is_checked=True, **more)
        except AssertionError:
            return False
        return True

    def is_clean(self) -> bool:
        return not self.folder.git("status", "--porcelain", "--untracked-files=no")

    def unmerged(self) -> list[str]:
        found = self.folder.git("diff", "--name-only", "--diff-filter=U")
        return found.splitlines()

    def commit(self) -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", f"step {len(self.steps)}")
        return "commit"

    def clean(self) -> None:
        if not self.is_clean() or self.folder.git("ls-files", "--others", "--exclude-standard"):
            self.commit()

    def stage_partly(self) -> str:
        """Commit some hunks of a file."""
        path = self.some_path()
        try:
            old = self.folder.git("show", f"HEAD:{path}").splitlines()
        except AssertionError:
            return self.commit()
        new, staged = self.lines_of(path), []
        for tag, a, b, c, d in difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
            staged += new[c:d] if tag == "equal" or self.random.random() < 0.5 else old[a:b]
        file = self.folder.folder / path
        whole = file.read_text()
        self.folder.write(path, *staged)
        self.git("add", path)
        file.write_text(whole)
        self.git("commit", "-q", "-m", f"part {len(self.steps)}")
        return f"commit hunks of {path}"

    def amend(self) -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "--amend", "--no-edit", "--allow-empty")
        return "amend"

    def branches(self) -> list[str]:
        return self.folder.git("for-each-ref", "--format=%(refname:short)", "refs/heads").splitlines()

    def branch(self) -> str:
        name = f"b{len(self.steps)}"
        self.git("checkout", "-q", "-b", name)
        return f"branch {name}"

    def switch(self) -> str:
        self.clean()
        name = self.random.choice(self.branches())
        self.git("checkout", "-q", name)
        return f"switch to {name}"

    def other_branch(self) -> str:
        current = self.folder.git("rev-parse", "--abbrev-ref", "HEAD")
        others = [name for name in self.branches() if name != current]
        return self.random.choice(others) if others else "HEAD"

    def diverge(self) -> str:
        """Let two branches change the same file."""
        self.clean()
        self.branch()
        self.random.choice((self.tool, self.command, self.stranger))()
        self.commit()
        self.git("checkout", "-q", "-")
        self.random.choice((self.tool, self.command, self.stranger))()
        self.commit()
        return "diverge"

    def merge(self) -> str:
        self.clean()
        name = self.other_branch()
        if self.random.random() < 0.4:
            self.git("merge", "-q", "--squash", name)
            self.resolve()
            self.commit()
            return f"squash {name}"
        if not self.git("merge", "-q", "--no-edit", name):
            self.resolve()
            self.commit()
        return f"merge {name}"

    def rebase(self) -> str:
        self.clean()
        name = self.other_branch()
        self.finish("rebase", self.git("rebase", "-q", name))
        return f"rebase on {name}"

    def interactive(self) -> str:
        """Reorder, squash, fix up, drop, edit or split the last commits."""
        self.clean()
        count = int(self.folder.git("rev-list", "--count", "--first-parent", "HEAD"))
        if count < 4 or self.folder.git("rev-list", "--merges", "-n1", "HEAD~2..HEAD"):
            return "no interactive rebase"
        kind, script = self.random.choice(list(_SEQUENCES.items()))
        is_done = self.git("rebase", "-q", "-i", "HEAD~2", GIT_SEQUENCE_EDITOR=script)
        if kind in ("edit", "split") and not self.unmerged() and self.folder.repository.is_unfinished:
            is_done = self.change_stopped(kind)
        self.finish("rebase", is_done)
        return f"rebase with {kind}"

    def change_stopped(self, kind: str) -> bool:
        """Change or split the commit at which a rebase stops."""
        if kind == "split":
            self.git("reset", "-q", "HEAD~1")
            self.stage_partly()
        else:
            # What somebody else writes during a command is taken for the command's.
            (self.tool if self._around else self.random.choice((self.tool, self.stranger)))()
        self.git("add", "-A")
        self.git("commit", "-q", *(["-m", f"split {len(self.steps)}"] if kind == "split" else ["--amend", "--no-edit"]))
        return self.git("rebase", "--continue")

    def pull(self) -> str:
        """Rebase on another branch with changes that are not committed."""
        name = self.other_branch()
        self.finish("rebase", self.git("pull", "-q", "--rebase", "--autostash", ".", name))
        if self.folder.git("stash", "list") and self.is_clean():
            self.git("stash", "pop", "-q")
        self.resolve_or_discard()
        return f"pull --rebase --autostash {name}"

    def cherry_pick(self) -> str:
        self.clean()
        name = self.other_branch()
        if self.random.random() < 0.4:
            self.git("cherry-pick", "-n", name)
            self.resolve()
            self.commit()
        else:
            self.finish("cherry-pick", self.git("cherry-pick", name))
        return f"cherry-pick {name}"

    def finish(self, command: str, is_done: bool) -> None:
        """Resolve conflicts until a command is done; give up after some."""
        for _ in range(6):
            if is_done:
                return
            self.resolve()
            self.git("add", "-A")
            is_done = self.git(command, "--continue") or self.git(command, "--skip")
        self.git(command, "--abort")

    def resolve(self) -> None:
        """Resolve every conflict in a random way."""
        for path in self.unmerged():
            # What somebody else writes during a command is taken for the command's.
            others = () if self._around else ("unknown",)
            way = self.random.choice(("ours", "theirs", "both", "reversed", "agent", "person", "delete", *others))
            self.resolve_file(path, way)
            self.git("add", "-A", "--", path)

    def resolve_file(self, path: str, way: str) -> None:
        file = self.folder.folder / path
        if not file.is_file() or way == "delete":
            self.git("rm", "-q", "-f", "--ignore-unmatch", "--", path)
            return
        sides = _sides(file.read_text().splitlines(), way)
        writer = {"agent": AGENTS[0], "person": PERSON, "unknown": "unknown"}.get(way)
        if writer is None or writer == "unknown":
            lines = sides if writer is None else self.changed(sides, "unknown")
            self.folder.write(path, *lines)
        else:
            content = "".join(f"{line}\n" for line in [*self.changed(sides, writer), self.line(writer)])
            self.write_by_tool(writer, path, content)

    def reset(self) -> str:
        if int(self.folder.git("rev-list", "--count", "--first-parent", "HEAD")) < 3:
            return "no reset"
        kind = self.random.choice(("--soft", "--mixed", "--hard"))
        self.git("reset", "-q", kind, "HEAD~1")
        return f"reset {kind}"

    def reset_path(self) -> str:
        path = self.some_path()
        words = self.random.choice((["reset", "-q", "--"], ["checkout", "-q", "HEAD", "--"], ["checkout", "-q", "HEAD~1", "--"]))
        self.git(*words, path)
        return f"{' '.join(words)} {path}"

    def stash(self) -> str:
        """Stash, do something else, and bring it back, maybe on another base or branch."""
        self.git("stash", "push", "-q", "--include-untracked")
        kind = self.random.choice(("same base", "another base", "another branch"))
        if kind == "another base":
            self.random.choice((self.tool, self.stranger))()
            self.commit()
        elif kind == "another branch":
            self.git("checkout", "-q", self.other_branch())
        self.git("stash", self.random.choice(("apply", "pop")), "-q")
        self.resolve_or_discard()
        return f"stash and back on {kind}"

    def resolve_or_discard(self) -> None:
        self.resolve()
        if self.unmerged():
            self.git("checkout", "-q", "-f", "HEAD")

    def free_paths(self) -> list[str]:
        """Return the paths that no file has, nor had in the last commit: git sees no rename to those."""
        taken = self.folder.git("ls-tree", "-r", "--name-only", "HEAD").splitlines()
        return [name for name in FILES if name not in taken and not (self.folder.folder / name).exists()]

    def rename(self) -> str:
        path, free = self.some_path(), self.free_paths()
        if not free:
            return "no rename"
        (self.folder.folder / free[0]).parent.mkdir(exist_ok=True)
        self.git("mv", path, free[0])
        self._renamed.add(free[0])
        return f"rename {path} to {free[0]}"

    def copy(self) -> str:
        path, free = self.some_path(), self.free_paths()
        if not free or not (self.folder.folder / path).exists():
            return "no copy"
        (self.folder.folder / free[0]).parent.mkdir(exist_ok=True)
        shutil.copyfile(self.folder.folder / path, self.folder.folder / free[0])
        # What a file was copied from is known once both are committed.
        self.commit()
        return f"copy {path} to {free[0]}"

    def delete(self) -> str:
        """Delete a file, and maybe write it anew."""
        path = self.some_path()
        if len(self.paths()) < 2:
            return "no deletion"
        (self.folder.folder / path).unlink()
        if self.random.random() < 0.5:
            self.commit()
        if self.random.random() < 0.5:
            self.write_by_tool(AGENTS[1], path, "".join(f"{self.line(AGENTS[1])}\n" for _ in range(3)))
        return f"delete {path}"

    def worktree(self) -> str:
        """Work in another worktree, or come back."""
        if self.folder is not self.main:
            self.folder = self.main
            return "back in the main worktree"
        place = self.main.folder.parent / f"tree{len(self.steps)}"
        if not self.git("worktree", "add", "-q", "-b", f"w{len(self.steps)}", str(place)):
            return "no worktree"
        self.folder = GitFolder(place, is_new=False)
        return "another worktree"

    def collect(self) -> str:
        self.git("reflog", "expire", "--expire=now", "--all")
        self.git("gc", "-q", "--prune=now")
        return "gc"

    # Running

    def step(self) -> None:
        """Do one step, by a person or within a command of an agent."""
        write = self.random.choice((self.tool, self.tool, self.command, self.formatter, self.stranger, self.two_at_once))
        step = write if self.random.random() < 0.45 else self.random.choice(GIT_STEPS)(self)
        if write is not step and self.random.random() < 0.25 and step.__name__ in _WITHIN_COMMANDS:
            self._around = self.random.choice(AGENTS)
            with self.shell(self._around):
                self.steps.append(f"in a command: {step()}")
            self._around = None
        else:
            self.steps.append(step())

    def note_hidden(self) -> None:
        """Note the lines of files that git takes for new ones, though they were renamed: their origin may be unknown."""
        for path in sorted(self._renamed):
            is_committed = self.git("cat-file", "-e", f"HEAD:{path}")
            words = ("log", "-1", "-m", "--format=") if is_committed else ("diff", "HEAD")
            seen = self.folder.git(*words, "-M", "--name-status", "--diff-filter=R", is_checked=False)
            if not any(row.endswith(f"\t{path}") for row in seen.splitlines()):
                self.hidden.update(self.lines_of(path))
            if is_committed:
                self._renamed.discard(path)

    def check(self) -> None:
        """Compare all files, as they are committed and as they are in the worktree."""
        if self.folder.repository.is_unfinished:
            return
        repo = self.folder.repository
        for path in self.folder.git("ls-tree", "-r", "--name-only", "HEAD").splitlines():
            self._compare(path, [(line.text, line.origin) for line in blame_file(repo, self.log, path, "HEAD")])
        changed = self.folder.git("diff", "--name-only", "HEAD").splitlines()
        others = self.folder.git("ls-files", "--others", "--exclude-standard").splitlines()
        for path in [path for path in (*changed, *others) if (self.folder.folder / path).is_file()]:
            if path not in others and not self.unmerged():
                self._compare(path, [(line.text, line.origin) for line in blame_file(repo, self.log, path)])
            blob, lines = repo.text("hash-object", "-w", "--", path), self.read(path)
            ranges = attribute_blob(repo, self.log, blob, path)
            places = [(lines[place - 1], one.origin) for one in ranges for place in range(one.start, one.end + 1)]
            self._compare(path, places)

    def _compare(self, path: str, found: Iterable[tuple[str, Origin]]) -> None:
        for text, origin in found:
            if text.startswith(_MARKERS):
                continue
            expected, answer = self.writers[text], _name(origin)
            if answer != expected and not (answer == "unknown" and text in self.hidden):
                raise Mismatch(f"{path}: {text!r} is of {expected!r}, not of {answer!r}\n  " + "\n  ".join(self.steps))


def _name(origin: Origin) -> str:
    if origin.kind == "person":
        return origin.person or "person"
    # Both of a mixed line wrote it; in which order says nothing.
    names = sorted(origin.sessions, key=AGENTS.index)
    return " ".join(names) or origin.kind


def _sides(lines: list[str], way: str) -> list[str]:
    """Return a file with its conflicts resolved."""
    found: list[str] = []
    sides: dict[str, list[str]] = {}
    side = None
    for line in lines:
        if _INNER_MARKER.match(line):
            continue
        if line.startswith("<<<<<<<"):
            side, sides = "ours", {"ours": [], "theirs": []}
        elif line.startswith("|||||||"):
            side = "base"
        elif line.startswith("=======") and side:
            side = "theirs"
        elif line.startswith(">>>>>>>"):
            order = {"ours": ["ours"], "theirs": ["theirs"], "reversed": ["theirs", "ours"]}.get(way, ["ours", "theirs"])
            found += [one for name in order for one in sides[name]]
            side = None
        elif side:
            sides.setdefault(side, []).append(line)
        else:
            found.append(line)
    return found


# What an editor does to the list of a rebase's commits.
_SEQUENCES = {
    "reorder": "sed -i '1{h;d};2{G}'",
    "squash": "sed -i '2s/^pick/squash/'",
    "fixup": "sed -i '2s/^pick/fixup/'",
    "drop": "sed -i '1s/^pick/drop/'",
    "edit": "sed -i '1s/^pick/edit/'",
    "split": "sed -i '2s/^pick/edit/'",
}
_WITHIN_COMMANDS = frozenset(
    (
        *("merge", "rebase", "cherry_pick", "switch", "amend", "commit", "reset", "reset_path", "interactive", "stage_partly"),
        *("rename", "copy", "delete"),
    )
)


def _bound(name: str) -> "Callable[[Program], Callable[[], str]]":
    return lambda program: getattr(program, name)


GIT_STEPS = tuple(
    map(
        _bound,
        (
            *("commit", "commit", "commit", "stage_partly", "stage_partly", "amend", "branch", "switch", "diverge", "diverge"),
            *("merge", "rebase", "rebase", "interactive", "interactive", "cherry_pick", "reset", "reset_path", "stash", "stash"),
            *("interactive", "pull", "rename", "copy", "delete", "worktree", "collect", "git_and_write", "git_and_write"),
        ),
    )
)


def run(seed: int, steps: int, folder: Path, log: Decklog, *, is_checked_at_end: bool = False) -> Program:
    """Run a program, and compare after every step, or once."""
    program = Program(seed, folder, log)
    program.steps.append(f"seed {seed}")
    for _ in range(steps):
        program.step()
        program.note_hidden()
        if not is_checked_at_end:
            program.check()
    program.check()
    return program
