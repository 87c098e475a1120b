"""The hash chain of a stream: how an entry is written down to be hashed. `docs/journal.md` is this file in words."""

from hashlib import sha256
from json.encoder import encode_basestring as _quote
from operator import itemgetter
from typing import TYPE_CHECKING

from decklog.core.errors import Damaged
from decklog.journal.rows import COLUMNS, STREAM_SIZE
from decklog.records.values import from_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    Row = tuple[Any, ...]
    # Of the entry that the next one follows: its hash, its number and its time.
    Head = tuple[str, int, str]


START = ""

# Sorted, as they stand in the canonical text. A field without a value is left out, so a field that is added one day changes
# no hash of the past.
FIELDS = (
    "agent",
    "agent_id",
    "at",
    "body",
    "confidence",
    "group_id",
    "iteration",
    "key",
    "kind",
    "payload",
    "phase",
    "record_id",
    "record_table",
    "redacted",
    "refs",
    "seq",
    "stream",
    "subtype",
    "task_id",
)


_STARTS = tuple(f'"{name}":' for name in FIELDS)
_in_order = itemgetter(*FIELDS)


def digest(text: str | None) -> str | None:
    """Digest a body or a payload; the chain holds only this, so that retention may drop the text itself."""
    return None if text is None else sha256(text.encode()).hexdigest()


def canonical(values: "Mapping[str, Any]") -> str:
    """Write an entry as canonical JSON; `body` and `payload` are given as their digests."""
    parts = [
        start + (_quote(value) if type(value) is str else str(value))
        for start, value in zip(_STARTS, _in_order(values), strict=True)
        if value is not None
    ]
    return "{" + ",".join(parts) + "}"


def link(previous: str, values: "Mapping[str, Any]") -> str:
    """Hash an entry onto the one before it; `redacted` counts only when it is set."""
    return sha256((previous + canonical(values)).encode()).hexdigest()


STREAM, SEQ, AT, HASH = map(COLUMNS.index, ("stream", "seq", "at", "hash"))
RECORD_TABLE, RECORD_ID, BODY, PAYLOAD = map(COLUMNS.index, ("record_table", "record_id", "body", "payload"))
_REDACTED, REFS = COLUMNS.index("redacted"), COLUMNS.index("refs")
KIND, KEY, BODY_DIGEST, PAYLOAD_DIGEST = map(COLUMNS.index, ("kind", "key", "body_digest", "payload_digest"))
_WIDTH = len(COLUMNS)
_NAMES_KEPT = 4096
_NOTES_KEPT, _LONGEST_NOTE = 512, 64
_TEXT_OR_NOTHING = frozenset({str, type(None)})


class _Fragments(dict):  # type: ignore[type-arg]
    """What stands between the fields of an entry that hardly come twice, by the names in it, which come again and again."""

    def __missing__(self, names: "tuple[Any, ...]") -> "tuple[str, ...]":
        if len(self) >= _NAMES_KEPT:
            self.clear()
        agent, agent_id, confidence, group_id, kind, phase, record_table, refs, stream, subtype = names
        between = (
            _field("confidence", confidence) + _field("group_id", group_id),
            _field("kind", kind),
            _field("phase", phase),
            _field("record_table", record_table),
            f'{_field("refs", refs)}"seq":',
        )
        until_task = f",{_field('stream', stream)}{_field('subtype', subtype)}"
        until_at = f'{{{_field("agent", agent)}{_field("agent_id", agent_id)}"at":'
        texts = self[names] = (
            until_at,
            *between,
            until_task,
            # Where nothing stands between them, and where nothing does behind the key.
            "".join(between),
            "".join(between[1:]),
            f"{until_task[:-1]}}}",
            # Up into the quotes of a time that is not known yet.
            f'{until_at}"',
        )
        return texts


_fragments = _Fragments()


class _Notes(dict):  # type: ignore[type-arg]
    """Digests of what is noted with changes, which is the same again and again."""

    def __missing__(self, note: str) -> str:
        found = sha256(note.encode()).hexdigest()
        if len(note) <= _LONGEST_NOTE:
            if len(self) >= _NOTES_KEPT:
                self.clear()
            self[note] = found
        return found


_notes = _Notes()


def _field(name: str, value: "Any") -> str:
    return "" if value is None else f'"{name}":{_quote(value) if type(value) is str else value},'


class _Differs(TypeError):
    """A text of a row is not what its digest says, or no text at all."""


def _text_field(name: str, text: "Any", digest: "Any") -> str:
    """Write a body or a payload by its digest, whether the text itself is there or was dropped or moved."""
    if text is None:
        return _field(name, digest)
    found = sha256(text.encode()).hexdigest() if type(text) is str else None
    if found is None or (digest is not None and digest != found):
        raise _Differs(name)
    return f'"{name}":"{found}",'


def seal(row: "Sequence[Any]") -> tuple[str, str, str]:
    """Write a row as canonical JSON, cut where its time and its number go, which may be given to it elsewhere."""
    # In the order of the alphabet, as `FIELDS` has them. Numbers are never looked up, since to a dictionary 1 and 1.0 are the
    # same; nor is what hardly comes twice.
    (_, stream, _, _, _, kind, subtype, agent, agent_id, group_id, task_id, iteration, phase, confidence, redacted, key,
     record_table, record_id, refs, body_digest, payload_digest, body, payload) = row  # fmt: skip
    names = agent, agent_id, confidence, group_id, kind, phase, record_table, refs, stream, subtype
    (_, until_iteration, until_payload, until_record_id, until_redacted, until_seq, until_task, _, _, end,
     start) = _fragments[names]  # fmt: skip
    # What is not there is not asked for, and what mostly is there is written out: calls are the most of what this takes.
    if body is None or body_digest is not None or type(body) is not str:
        said = "" if body is body_digest is None else _text_field("body", body, body_digest)
    else:
        said = f'"body":"{sha256(body.encode()).hexdigest()}",'
    if payload is None or payload_digest is not None or type(payload) is not str:
        told = "" if payload is payload_digest is None else _text_field("payload", payload, payload_digest)
    else:
        told = f'"payload":"{sha256(payload.encode()).hexdigest()}",'
    middle = (
        f'",{said}{until_iteration}{"" if iteration is None else _field("iteration", iteration)}'
        f"{'' if key is None else _field('key', key)}{until_payload}{told}{until_record_id}"
        f"{'' if record_id is None else _field('record_id', record_id)}{until_redacted}"
        f"{_field('redacted', redacted) if redacted else ''}{until_seq}"
    )
    return start, middle, end if task_id is None else f"{until_task}{_field('task_id', task_id)[:-1]}}}"


def seal_around(row: "Sequence[Any]") -> tuple[str, str, str, str, str]:
    """Seal what a record became, but for its image and its id: `sealed_within` puts those of another in their places."""
    start, middle, end = seal(row)
    until_payload, _, rest = middle.partition(f'"payload":"{digest(row[PAYLOAD])}",')
    until_record_id, _, until_seq = rest.partition(f'"record_id":{_quote(row[RECORD_ID])},')
    return start, until_payload, until_record_id, until_seq, end


def sealed_within(around: tuple[str, str, str, str, str], image: str, record_id: str) -> tuple[str, str, str]:
    """Seal what a record became that differs in its image and its id alone from one that was sealed before."""
    start, until_payload, until_record_id, until_seq, end = around
    told = sha256(image.encode()).hexdigest()
    middle = f'{until_payload}"payload":"{told}",{until_record_id}"record_id":{_quote(record_id)},{until_seq}'
    return start, middle, end


def _written(row: "Sequence[Any]") -> str:
    """Write a row as canonical JSON, as `canonical` would write its values."""
    (_, stream, seq, at, _, kind, subtype, agent, agent_id, group_id, task_id, iteration, phase, confidence, redacted, key,
     record_table, record_id, refs, body_digest, payload_digest, body, payload) = row  # fmt: skip
    # A damaged page gives rows of anything.
    if body_digest is payload_digest is iteration is None and type(body) in _TEXT_OR_NOTHING and not redacted:
        names = agent, agent_id, confidence, group_id, kind, phase, record_table, refs, stream, subtype
        (until_at, until_key, until_payload, until_record_id, until_redacted, until_seq, until_task, until_seq_at_once,
         from_key_until_seq, end, _) = _fragments[names]  # fmt: skip
        if payload is record_id is task_id is None and body is not None and type(key) in _TEXT_OR_NOTHING:
            # Most entries have a body, some a key, and nothing else that is their own.
            said = f'{until_at}{_quote(at)},"body":"{sha256(body.encode()).hexdigest()}",'
            if key is None:
                return f"{said}{until_seq_at_once}{seq}{end}"
            return f'{said}{until_key}"key":{_quote(key)},{from_key_until_seq}{seq}{end}'
        if type(payload) is type(record_id) is str and key is None and type(task_id) in _TEXT_OR_NOTHING:
            # What a record became, mostly with a note and of a task.
            noted = "" if body is None else f'"body":"{_notes[body]}",'
            rest = end if task_id is None else f'{until_task}"task_id":{_quote(task_id)}}}'
            return (
                f"{until_at}{_quote(at)},{noted}{until_key}{until_payload}"
                f'"payload":"{sha256(payload.encode()).hexdigest()}",{until_record_id}'
                f'"record_id":{_quote(record_id)},{until_redacted}{until_seq}{seq}{rest}'
            )
    start, middle, end = seal(row)
    return f"{start}{_quote(at)[1:-1]}{middle}{seq}{end}"


def hashed(previous: str, row: "Sequence[Any]") -> str:
    """Hash a row onto the one before it."""
    return sha256((previous + _written(row)).encode()).hexdigest()


def extend(head: "tuple[Any, ...]", rows: "Iterable[list[Any]]", now: str) -> "tuple[tuple[Any, ...], bool]":
    """Give rows of one stream, which follow its head, their places and hashes, and this time to those that have none.

    What was sealed has its seal behind its columns, and loses it here.
    What comes back is the last one's place, hash and time, as the stream's head, and whether any is older than the one before.
    """
    position, previous, latest = head
    seq, goes_back = position % STREAM_SIZE, False
    for row in rows:
        position += 1
        seq += 1
        at = row[AT] or now
        row[0], row[SEQ], row[AT] = position, seq, at
        if len(row) > _WIDTH:
            start, middle, end = row.pop()
            previous = row[HASH] = sha256(f"{previous}{start}{at}{middle}{seq}{end}".encode()).hexdigest()
        else:
            previous = row[HASH] = hashed(previous, row)
        if at < latest:
            goes_back = True
        latest = at
    return (position, previous, latest), goes_back


def extend_sealed(head: "tuple[Any, ...]", columns: "Sequence[Sequence[Any]]", now: str) -> "tuple[list[Sequence[Any]], bool]":
    """Do as `extend` does for sealed entries of one stream, column by column, the seals last.

    What comes back is the columns without the seals, and whether any entry is older than the one before.
    """
    position, previous, latest = head
    *made, seals = columns
    times = made[AT] if None not in made[AT] else [at or now for at in made[AT]]
    first = position % STREAM_SIZE + 1
    seqs, hashes = range(first, first + len(seals)), []
    for seq, at, (start, middle, end) in zip(seqs, times, seals, strict=True):
        previous = sha256(f"{previous}{start}{at}{middle}{seq}{end}".encode()).hexdigest()
        hashes.append(previous)
    made[0], made[SEQ], made[AT], made[HASH] = range(position + 1, position + 1 + len(seals)), seqs, times, hashes
    return made, any(map(str.__gt__, (latest, *times), times))


def extend_alike(head: "tuple[Any, ...]", columns: "Sequence[Sequence[Any]]", now: str) -> "list[Sequence[Any]]":
    """Give entries that differ in their bodies alone, column by column, their places behind a stream's head, a time and hashes.

    What is the same in all of them is written down once; the hashes are those that `hashed` gives one by one.
    """
    position, previous, _ = head
    (_, stream, _, _, _, kind, subtype, agent, agent_id, group_id, _, _, phase, confidence, _, _, record_table, _, refs,
     *_) = (column[0] for column in columns)  # fmt: skip
    names = agent, agent_id, confidence, group_id, kind, phase, record_table, refs, stream, subtype
    until_at, _, _, _, _, _, _, until_seq, _, end, _ = _fragments[names]
    until_body, until_seq = f'{until_at}{_quote(now)},"body":"', f'",{until_seq}'
    seqs, hashes = range(position % STREAM_SIZE + 1, position % STREAM_SIZE + len(columns[0]) + 1), []
    for seq, body in zip(seqs, columns[BODY], strict=True):
        text = f"{previous}{until_body}{sha256(body.encode()).hexdigest()}{until_seq}{seq}{end}"
        previous = sha256(text.encode()).hexdigest()
        hashes.append(previous)
    made = [*columns]
    made[0], made[SEQ], made[AT] = range(position + 1, position + len(hashes) + 1), seqs, (now,) * len(hashes)
    made[HASH] = hashes
    return made


def halves(row: "Sequence[Any]") -> tuple[str, str]:
    """Write a row as canonical JSON up to its number and from there on, for a database that numbers it itself."""
    start, middle, end = seal(row)
    return f"{start}{_quote(row[AT])[1:-1]}{middle}", end


def flaw(previous: str, row: "Row") -> str | None:
    """Name what keeps a row from following a hash: its `body` or `payload` is not what its digest says, or its `hash` differs."""
    if type(row[SEQ]) is not int or type(row[AT]) is not str or (row[_REDACTED] != 0 and row[_REDACTED] != 1):
        return "hash"  # a damaged page gives rows of anything
    try:
        return None if hashed(previous, row) == row[HASH] else "hash"
    except _Differs as found:
        return str(found)


class Followed:
    """Rows of a stream that follow from each other: how many, which of them name texts by digests, and the row behind them."""

    __slots__ = ("ahead", "count", "goes_back", "named")

    def __init__(self, count: int, goes_back: bool, named: "list[Row]", ahead: "Row | None") -> None:
        self.count = count
        self.goes_back = goes_back
        self.named = named
        self.ahead = ahead


def follow(name: str, start: int, head: "Head", rows: "Iterable[Row]") -> Followed | None:
    """Walk a stream's rows from after one of it up to its end; None at one that does not follow, or an error over anything else.

    As `flaw` finds them one by one, but written out for what most entries are: calls would be a third of what this takes.
    """
    from hashlib import sha256

    previous, begun, latest = head
    expected, goes_back, ahead = begun, False, None
    named: list[Row] = []
    for row in rows:
        (pos, stream, seq, at, hash, kind, subtype, agent, agent_id, group_id, task_id, iteration, phase, confidence, redacted,
         key, record_table, record_id, refs, body_digest, payload_digest, body, payload) = row  # fmt: skip
        if pos >= start + STREAM_SIZE:
            ahead = row
            break
        expected += 1
        if seq != expected or pos != start + seq or stream != name:
            return None
        if body_digest is payload_digest is iteration is None and redacted == 0:
            names = agent, agent_id, confidence, group_id, kind, phase, record_table, refs, stream, subtype
            (until_at, until_key, until_payload, until_record_id, until_redacted, until_seq, until_task, _, from_key_until_seq,
             end, _) = _fragments[names]  # fmt: skip
            said = "" if body is None else f'"body":"{sha256(body.encode()).hexdigest()}",'
            if payload is record_id is task_id is None:
                known = "" if key is None else f'"key":{_quote(key)},'
                text = f"{previous}{until_at}{_quote(at)},{said}{until_key}{known}{from_key_until_seq}{seq}{end}"
            elif key is None and payload is not None and record_id is not None:
                told = sha256(payload.encode()).hexdigest()
                rest = end if task_id is None else f'{until_task}"task_id":{_quote(task_id)}}}'
                text = (
                    f'{previous}{until_at}{_quote(at)},{said}{until_key}{until_payload}"payload":"{told}",{until_record_id}'
                    f'"record_id":{_quote(record_id)},{until_redacted}{until_seq}{seq}{rest}'
                )
            else:
                text = previous + _written(row)
            if sha256(text.encode()).hexdigest() != hash:
                return None
        elif flaw(previous, row) is not None:
            return None
        elif body_digest is not None or payload_digest is not None:
            named.append(row)
        previous, goes_back, latest = hash, goes_back or at < latest, at
    return Followed(expected - begun, goes_back, named, ahead)


def flawed(row: "Row", what: str) -> Damaged:
    """Say in words what `flaw` found."""
    why = "does not match its hash" if what == "hash" else f"has a {what} that does not match its digest"
    return unusable(row, why)


class Stretch:
    """Rows of one stream, each of which follows from the one before it, and the hash that the first follows from."""

    def __init__(self, stream: str, previous: str, rows: "list[Row]", images: "dict[int, Any]") -> None:
        self.stream = stream
        self.previous = previous
        self.rows = rows
        # What records became, by the numbers of the entries that tell so. Read here, since whoever writes them has more to do.
        self.images = images

    @classmethod
    def checked(cls, stream: str, previous: str, rows: "list[Row]") -> "Stretch":
        """Walk the rows, and refuse them at the first that does not follow."""
        if not _is_unbroken(stream, previous, rows):
            _refuse_broken(stream, previous, rows)
        images = {row[SEQ]: image_of(row) for row in rows if row[RECORD_TABLE] is not None}
        return cls(stream, previous, rows, images)

    @property
    def size(self) -> int:
        """Estimate the characters of its entries."""
        return size_of(self.rows)


def _is_unbroken(stream: str, previous: str, rows: "list[Row]") -> bool:
    """Say whether rows follow from a hash; False also where that takes a closer look."""
    pos, seq = rows[0][0], rows[0][SEQ]
    try:
        walked = follow(stream, pos - seq, (previous, seq - 1, ""), rows)
    except (TypeError, AttributeError):
        return False  # a damaged page gives rows of anything
    return walked is not None and walked.count == len(rows)


def _refuse_broken(stream: str, previous: str, rows: "list[Row]") -> None:
    """Refuse the first row that does not follow."""
    if type(rows[0][SEQ]) is not int:
        raise flawed(rows[0], "hash")
    for seq, row in enumerate(rows, rows[0][SEQ]):
        what = flaw(previous, row)
        if what is not None or row[STREAM] != stream or row[SEQ] != seq:
            raise flawed(row, what or "hash")
        previous = row[HASH]


def image_of(row: "Row") -> "dict[str, Any]":
    """Read what a record became from the entry that tells so."""
    try:
        image = from_json(row[PAYLOAD])
    except (TypeError, ValueError):
        image = None
    if not isinstance(image, dict):
        raise unusable(row, "tells of a change, and its payload is no JSON object")
    return image


def unusable(row: "Row", why: str) -> Damaged:
    return Damaged(f"entry {row[STREAM]}:{row[SEQ]} {why}", stream=row[STREAM], seq=row[SEQ])


def size_of(rows: "list[Row]") -> int:
    """Estimate the characters of some entries."""
    return 500 * len(rows) + sum(len(row[BODY] or "") + len(row[PAYLOAD] or "") for row in rows)
