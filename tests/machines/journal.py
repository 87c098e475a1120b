"""A journal under any sequence of appends, pruning, backups, moves between engines and exports."""

import json
import tempfile
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from decklog import Conflict, Decklog, Entry, NotFound, Run
from decklog.transfer.jsonl import JsonlExport, JsonlImport
from decklog.transfer.move import Move
from decklog.transfer.prune import Prune
from decklog.transfer.restore import back_up, restore
from tests.machines.base import WHICH, LogMachine, pick
from tests.machines.journal_world import INLINE, JournalWorld, Line

MOST_HOPS = 3
LONG = {f"long {word}": f"{word} " * (INLINE // len(word)) for word in ("lexer", "parser")}
KINDS = st.sampled_from(["interaction", "tool", "event"])
ENTRIES = st.fixed_dictionaries(
    {
        "which": WHICH,
        "body": st.sampled_from(["lexer", "lexer", "parser", "parser", "lexer parser", "lexer parser", None, *LONG]),
        "number": st.sampled_from([7, 7, None]),
        "kind": KINDS,
        "subtype": st.sampled_from([None, None, "step"]),
        "group": st.sampled_from([None, None, "g"]),
        "key": st.sampled_from([None, None, "k", "l"]),
        # Some are dated days back.
        "days": st.sampled_from([0, 0, 0, 3]),
    }
)
OTHER = {"sqlite": "postgres", "postgres": "sqlite"}
outside = precondition(lambda self: not self.blocks)
hopping = precondition(lambda self: not self.blocks and self.hops < MOST_HOPS)


class JournalMachine(LogMachine[JournalWorld]):
    def begin_world(self) -> None:
        self.world = JournalWorld()
        self.hops = self.files = 0
        self.here = self.engine
        self.folder = Path(self.resources.enter_context(tempfile.TemporaryDirectory()))
        self.backups: list[tuple[str, JournalWorld]] = []
        self.exported = JournalWorld()
        self.anchors: dict[str, tuple[int, str | None]] = {}
        self.copy: tuple[Decklog, JournalWorld] | None = None
        self.start_run("run_1")

    def start_run(self, name: str) -> None:
        self.log.runs.start("a machine", run_id=name)
        self.world.add(name, self.change(("runs", name), None))

    def change(self, record: tuple[str, str], value: Any, subtype: str = "added") -> Line:
        return Line("change", self.clock.now(), subtype, record=record, value=value)

    def new_path(self, name: str) -> str:
        self.files += 1
        return str(self.folder / f"{self.files}-{name}")

    # Writing

    @precondition(lambda self: len(self.world.streams) < 3)
    @rule()
    def start(self) -> None:
        self.start_run(f"run_{len(self.world.streams) + 1}")

    def line_of(self, drawn: dict[str, Any]) -> tuple[str, Line]:
        at = self.clock.now() - timedelta(days=drawn["days"])
        body = drawn["body"] or (None if drawn["number"] is not None else "nothing to say")
        parts = {name: drawn[name] for name in ("kind", "subtype", "group", "key", "number")}
        return pick(drawn["which"], list(self.world.streams)), Line(at=at, body=LONG.get(body, body), **parts)

    def arguments(self, stream: str, line: Line) -> dict[str, Any]:
        payload = None if line.number is None else {"n": line.number}
        names = {"kind": line.kind, "subtype": line.subtype, "group_id": line.group, "key": line.key}
        return {"stream": stream, "body": line.body, "payload": payload, "at": line.at, **names}

    @rule(drawn=ENTRIES)
    def append(self, drawn: dict[str, Any]) -> None:
        stream, line = self.line_of(drawn)
        self.expect(stream, line, self.log.journal.append(**self.arguments(stream, line)))

    @rule(many=st.lists(ENTRIES, min_size=1, max_size=4))
    def append_many(self, many: list[dict[str, Any]]) -> None:
        lines = [self.line_of(drawn) for drawn in many]
        written = self.log.journal.append_many([self.arguments(stream, line) for stream, line in lines])
        for (stream, line), entry in zip(lines, list(written), strict=True):
            self.expect(stream, line, entry)

    def expect(self, stream: str, line: Line, entry: Entry) -> None:
        """An entry is new, or the first with its key comes back."""
        known = self.world.known(stream, line)
        if known is None:
            self.world.add(stream, line)
        assert (entry.stream, entry.seq) == (stream, known or len(self.world.streams[stream]))
        assert entry.already == (known is not None)

    @rule(which=WHICH, summary=st.sampled_from(["one", "two"]))
    def update(self, which: int, summary: str) -> None:
        name = pick(which, list(self.world.streams))
        self.log.runs.update(name, summary=summary)
        self.world.add(name, self.change(("runs", name), summary, "changed"))

    @rule(which=WHICH, document=st.sampled_from(["long lexer", "small"]))
    def save(self, which: int, document: str) -> None:
        """Save a document, which may be a text that entries have too."""
        name = pick(which, list(self.world.streams))
        versions = self.versions(name)
        document = LONG.get(document, document)
        saved = self.log.states.save(name, "doc", document)
        if versions and versions[-1] == document:
            assert saved.already
            return
        place = [name, "global", "doc"]
        self.world.add(name, self.saved("states", place, None, "changed"))
        self.world.add(name, self.saved("state_versions", [*place, str(len(versions) + 1)], document, "added"))

    def saved(self, table: str, key: list[str], value: Any, subtype: str) -> Line:
        record = (table, json.dumps(key, separators=(",", ":")))
        return Line("change", self.clock.now(), subtype, group=key[1], record=record, value=value)

    def versions(self, name: str) -> list[str]:
        lines = self.world.streams[name]
        return [line.value for line in lines if line.record is not None and line.record[0] == "state_versions"]

    @rule(hours=st.sampled_from([1, 30, 80]))
    def wait(self, hours: int) -> None:
        self.clock.advance(hours=hours)

    # Retention

    @rule(days=st.sampled_from([0, 1, 2]), kind=st.one_of(st.none(), KINDS), which=WHICH, everywhere=st.booleans())
    def prune(self, days: int, kind: str | None, which: int, everywhere: bool) -> None:
        stream = None if everywhere else pick(which, list(self.world.streams))
        age, now = timedelta(days=days), self.clock.now()
        done = Prune(self.log, age, kind=kind, stream=stream).run(apply=True)
        assert (done.entries, done.blobs) == self.world.prune(now - age, kind, stream, now)
        self.check()

    def check(self) -> None:
        result = self.log.journal.verify()
        assert result.ok, result.problems

    # Copies

    @outside
    @rule()
    def back_up(self) -> None:
        path = self.new_path("backup.db")
        done = back_up(self.log, path)
        assert done.entries == sum(map(len, self.world.streams.values()))
        self.backups.append((path, self.world.copy()))

    @precondition(lambda self: not self.blocks and self.backups and self.hops < MOST_HOPS)
    @rule(which=WHICH)
    def restore(self, which: int) -> None:
        """Go back to a backup: in the place of a file, or on a server that is empty."""
        path, before = pick(which, self.backups)
        if self.here == "sqlite":
            target = self.log.db.target
            self.log.close()
            restore(path, target, clock=self.clock)
            self.log = self.resources.enter_context(Decklog.open(target, clock=self.clock, durability="relaxed"))
        else:
            fresh = self.opened("postgres")
            with Decklog.open(path, clock=self.clock) as backup:
                Move(backup, fresh).run()
            self.go_on_with(fresh, "postgres")
        self.world = before.copy()
        self.check()

    def go_on_with(self, log: Decklog, engine: str) -> None:
        if self.copy is None or self.log is not self.copy[0]:
            self.log.close()
        self.log, self.here = log, engine
        self.hops += 1

    @hopping
    @rule(stay=st.booleans())
    def move(self, stay: bool) -> None:
        """Move to the other engine and go on there, or stay and keep what was moved for later."""
        engine = OTHER[self.here]
        fresh = self.opened(engine)
        Move(self.log, fresh).run()
        if stay:
            self.hops += 1
            self.copy = (fresh, self.world.copy())
        else:
            self.go_on_with(fresh, engine)
        self.check()

    @precondition(lambda self: not self.blocks and self.copy)
    @rule()
    def move_on(self) -> None:
        """Move what has come since into a copy; texts that were dropped here, and runs that are unknown here, stay there."""
        assert self.copy is not None
        log, world = self.copy
        act = partial(Move(self.log, log).run)
        if not all(self.world.is_beginning(stream, world) for stream in world.streams.keys() & self.world.streams.keys()):
            with pytest.raises(Conflict):
                act()
            return
        act()
        for stream in self.world.streams:
            world.follow(stream, self.world)
        world.stored_bodies |= self.world.stored_bodies
        assert seen(log, world) == due(world)

    @outside
    @rule()
    def export(self) -> None:
        """Write the log as lines, over those of before: nothing that this log does not have is lost by it."""
        act = partial(JsonlExport(self.log, str(self.folder / "lines")).run)
        for stream in self.world.order():
            if not self.world.is_beginning(stream, self.exported):
                with pytest.raises(Conflict):
                    act()
                return
            self.exported.streams[stream] = self.world.streams[stream]
        act()
        self.exported.stored_bodies |= self.world.stored_bodies

    @precondition(lambda self: self.exported.streams)
    @hopping
    @rule(same_engine=st.booleans())
    def load(self, same_engine: bool) -> None:
        """Begin anew from the lines."""
        engine = self.here if same_engine else OTHER[self.here]
        fresh = self.opened(engine)
        JsonlImport(fresh, str(self.folder / "lines")).run()
        self.go_on_with(fresh, engine)
        self.world = self.exported.copy()
        self.check()

    @precondition(lambda self: self.exported.streams)
    @outside
    @rule()
    def merge(self) -> None:
        """Take in what the lines have beyond this log; two that went different ways are refused."""
        act = partial(JsonlImport(self.log, str(self.folder / "lines")).run)
        self.world.stored_bodies |= self.exported.stored_bodies
        for stream in self.exported.order():
            if not self.world.is_beginning(stream, self.exported) and not self.exported.is_beginning(stream, self.world):
                with pytest.raises(Conflict):
                    act()
                return
            self.world.follow(stream, self.exported)
        act()
        self.check()

    @outside
    @rule()
    def anchor(self) -> None:
        """Keep the heads outside; a log that went back behind them, or another way, is found out."""
        result = self.log.journal.verify(anchor=str(self.folder / "anchors"))
        assert result.anchored == len(self.anchors)
        heads = {name: [line.hash for line in lines] for name, lines in self.world.streams.items()}
        lost = [name for name, (seq, hash) in self.anchors.items() if heads.get(name, [])[seq - 1 : seq] != [hash]]
        assert sorted(problem.stream or "" for problem in result.problems) == sorted(lost)
        if not lost:
            self.anchors = {name: (len(hashes), hashes[-1]) for name, hashes in heads.items()}

    # What must hold

    def compare(self) -> None:
        entries = {name: self.log.journal.find(name, oldest_first=True, limit=1000) for name in self.world.streams}
        for name, found in entries.items():
            self.learn_hashes(name, found)
        assert {name: list(map(visible, found)) for name, found in entries.items()} == due(self.world)
        name = pick(self.steps, list(self.world.streams))
        (self.compare_past, self.compare_tail)[self.steps % 2](name)

    def learn_hashes(self, name: str, found: list[Entry]) -> None:
        """Learn the hashes of what was written in this step, and see that no other has changed."""
        lines = self.world.streams[name]
        assert [line.hash or entry.hash for line, entry in zip(lines, found, strict=True)] == [entry.hash for entry in found]
        self.world.streams[name] = tuple(replace(line, hash=entry.hash) for line, entry in zip(lines, found, strict=True))

    def compare_tail(self, name: str) -> None:
        whole = len(self.world.streams[name])
        after = self.steps % whole
        followed = self.log.journal.tail(name, after=after, follow=False)
        assert [entry.seq for entry in followed] == list(range(after + 1, whole + 1))

    def look_further(self) -> None:
        """Look for words and kinds, which brings the index up to date first."""
        name = pick(self.steps, list(self.world.streams))
        (self.compare_lists, self.compare_search)[self.steps // 2 % 2](name)

    def compare_lists(self, name: str) -> None:
        """Lists by kind and by time have what they should, page by page."""
        lines = list(enumerate(self.world.streams[name], 1))
        tools = [seq for seq, line in lines if line.kind == "tool"]
        assert numbers(partial(self.log.journal.find, name, kind="tool", limit=3)) == tools[::-1]
        since, until = self.clock.now() - timedelta(days=3), self.clock.now() - timedelta(hours=1)
        between = [seq for seq, line in lines if since <= line.at <= until]
        assert numbers(partial(self.log.journal.find, name, since=since, until=until, oldest_first=True, limit=4)) == between

    def compare_search(self, name: str) -> None:
        for words in ("lexer", "lexer parser"):
            found = [seq for seq, line in enumerate(self.world.streams[name], 1) if set(words.split()) <= line.words()]
            assert numbers(partial(self.log.journal.search, words, stream=name, limit=2)) == found[::-1]

    def compare_past(self, name: str) -> None:
        """A run as of an entry, by number and by time."""
        changes = [(seq, line) for seq, line in enumerate(self.world.streams[name], 1) if line.record == ("runs", name)]
        assert numbers(partial(self.log.journal.history, "runs", name, limit=2)) == [seq for seq, _ in changes]
        seq = pick(self.steps * 5, range(1, len(self.world.streams[name]) + 1))
        at_entry = [line.value for number, line in changes if number <= seq][-1]
        assert self.log.journal.at(Run, name, str(seq)).summary == at_entry
        assert self.log.runs.snapshot(name, at=str(seq)).run.summary == at_entry
        then = self.clock.now() - timedelta(hours=31)
        at_time = [line.value for _, line in changes if line.at <= then]
        for ask in (partial(self.log.journal.at, Run, name), lambda when: self.log.runs.snapshot(name, at=when).run):
            if at_time:
                assert ask(then.isoformat()).summary == at_time[-1]
            else:
                with pytest.raises(NotFound):
                    ask(then.isoformat())

    def at_end(self) -> None:
        for name in self.world.streams:
            for number, document in enumerate(self.versions(name), 1):
                assert self.log.states.get(name, "doc", version=number).document == document
        super().at_end()


def numbers(ask: Any) -> list[int]:
    """Read a list page by page; give the numbers of its entries."""
    page = ask()
    found = [entry.seq for entry in page]
    while page.next is not None:
        page = ask(after=page.next)
        found += [entry.seq for entry in page]
    return found


def seen(log: Decklog, world: JournalWorld) -> dict[str, list[tuple[Any, ...]]]:
    return {name: [visible(entry) for entry in log.journal.find(name, oldest_first=True, limit=1000)] for name in world.streams}


def due(world: JournalWorld) -> dict[str, list[tuple[Any, ...]]]:
    return {name: [world.visible(line) for line in lines] for name, lines in world.streams.items()}


def visible(entry: Entry) -> tuple[Any, ...]:
    record = None if entry.record_table is None else (entry.record_table, entry.record_id)
    facts = (entry.kind, entry.at, entry.subtype, entry.group_id, entry.key, record)
    payload: Any = entry.payload
    number = payload["n"] if isinstance(payload, dict) and "n" in payload else None
    return facts if entry.kind == "change" or entry.subtype == "pruned" else (*facts, entry.body, number)
