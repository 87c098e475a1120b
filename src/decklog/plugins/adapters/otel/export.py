"""Export runs as spans of OpenTelemetry: to a collector by OTLP over HTTP, or to a file."""

import gzip
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from email.utils import parsedate_to_datetime
from hashlib import sha256
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from decklog.agents.events import CallOutcome
from decklog.core.clock import Clock, from_text, to_text
from decklog.core.errors import Denied, Invalid, Unreachable
from decklog.importing.exports import NewFile
from decklog.journal.entry import Entry, EntryKind
from decklog.log import Decklog
from decklog.plugins.adapters.otel import conventions as names
from decklog.plugins.adapters.otel import otlp
from decklog.plugins.adapters.otel.otlp import OtelSpan, nanoseconds_of
from decklog.plugins.adapters.otel.protobuf import REQUEST, RESPONSE, STATUS
from decklog.records.record import find_all
from decklog.stores.runs.run import ENDED, Run, RunStatus

Sink = Callable[[Sequence[OtelSpan]], None]

_FIELDS = ("agent", "agent_id", "group_id", "task_id", "iteration", "phase", "confidence", "refs", "key", "payload")
_RUN_TEXTS = ("goal", "summary", "repo", "branch", "worktree")
_CHARGE_FACTS = ("call_site", "agent", "agent_id", "group_id", "task_id", "answer_id", "cost_microdollars")
# The subtypes of entries that begin a step or call, and those that end it.
_BEGINS = {(EntryKind.TOOL, "call"): "call", (EntryKind.EVENT, "step"): "step"}
_ENDS = {(EntryKind.TOOL, "result"): "call", (EntryKind.EVENT, "step.ended"): "step"}
# Records that spans contain completely; changes of others are counted.
_CONTAINED = ("runs", "charges")


def trace_of(log: Decklog, run: Run) -> str:
    """Return the trace id of a run: that of its topmost parent. A fork has its own."""
    seen = {run.id}
    while run.parent_run_id is not None and run.parent_seq is None and run.parent_run_id not in seen:
        run = log.runs.get(run.parent_run_id)
        seen.add(run.id)
    # Include the start time: two logs may use the same run id, but hardly the same microsecond.
    return _digest("trace", run.id, to_text(run.started_at))[:32]


def _digest(*parts: str) -> str:
    return sha256("\0".join(("decklog", *parts)).encode()).hexdigest()


class RunSpans:
    """Builds the spans of one run from its entries in order."""

    def __init__(self, log: Decklog, run: Run, *, texts: bool = True, version: str = "") -> None:
        self.run = run
        self.trace_id = trace_of(log, run)
        self._texts = texts
        self._open: dict[str, Entry] = {}
        # Running attempts by task: the span id, and the task as the attempt began.
        self._attempts: dict[str, tuple[str, dict[str, Any]]] = {}
        self._resource = {names.SERVICE: "decklog"}
        self._scope = {"name": "decklog", "version": version}
        # Counts of changed records that no span contains.
        self.left_out: dict[str, int] = {}

    @property
    def waiting(self) -> int:
        """The number of open spans, including the run's own."""
        return len(self._open) + len(self._attempts) + (self.run.status not in ENDED)

    # Entries

    def of(self, entry: Entry) -> Iterator[OtelSpan]:
        """Yield the spans that end with an entry."""
        if entry.kind is EntryKind.CHANGE:
            yield from self._of_change(entry)
            return
        place = (entry.kind, entry.subtype or "")
        if (begun := self._part(entry, _BEGINS.get(place))) is not None and begun not in self._open:
            self._open[begun] = entry
        elif (ended := self._part(entry, _ENDS.get(place))) in self._open:
            assert ended is not None
            yield self._pair(ended, self._open.pop(ended), entry)
        else:
            yield self._moment(entry)

    def _part(self, entry: Entry, name: str | None) -> str | None:
        """Return the step or call that an entry begins or ends, or None."""
        part = entry.payload.get(name) if name is not None and isinstance(entry.payload, dict) else None
        return f"{name}:{part}" if part else None

    def _pair(self, part: str, begun: Entry, ended: Entry | None) -> OtelSpan:
        """Build the span of a step or a call; an unfinished one lasts as long as the run."""
        start = begun.at
        end = max(start, ended.at if ended is not None else self.run.ended_at or start)
        facts: Any = {**_payload(begun), **_payload(ended)}
        # Entries inside it refer to its id, without its kind.
        span = self._span(f"part:{part.partition(':')[2]}", begun, start, end)
        self._add_entry(span, names.BEGIN, begun, start)
        if ended is not None:
            self._add_entry(span, names.END, ended, end)
        if part.startswith("call:"):
            self._add_tool(span, facts, ended)
        else:
            span.name = str(begun.body or "step") if self._texts else "step"
        outcome = str(facts.get("outcome") or CallOutcome.LOST.value)
        if outcome != CallOutcome.OK.value:
            span.status, span.attributes[names.ERROR_TYPE] = names.ERROR, outcome
        return span

    def _add_tool(self, span: OtelSpan, facts: dict[str, Any], ended: Entry | None) -> None:
        tool = str(facts.get("tool") or "tool")
        span.name = f"{names.EXECUTE_TOOL} {tool}"
        values = {names.OPERATION: names.EXECUTE_TOOL, names.TOOL: tool, names.TOOL_CALL_ID: str(facts.get("call"))}
        if self._texts and facts.get("arguments"):
            values[names.TOOL_ARGUMENTS] = _as_json(facts["arguments"])
        if self._texts and ended is not None:
            values[names.TOOL_RESULT] = ended.body or ""
            span.attributes.pop(names.END + names.BODY, None)
        span.attributes |= values

    def _moment(self, entry: Entry) -> OtelSpan:
        # An imported span is exported with its original id.
        seq = entry.key.removeprefix(names.KEY) if entry.key and entry.key.startswith(names.KEY) else entry.seq
        span = self._span(f"entry:{seq}", entry, entry.at, entry.at)
        span.name = entry.subtype or str(entry.kind)
        self._add_entry(span, names.ENTRY, entry, entry.at)
        return span

    def _span(self, part: str, entry: Entry, start: datetime, end: datetime) -> OtelSpan:
        span = self._empty(part, self._parent(entry), start, end)
        if entry.agent:
            span.attributes[names.AGENT] = entry.agent
        if entry.task_id:
            span.attributes[names.TASK] = entry.task_id
        return span

    def _empty(self, part: str, parent: str, start: datetime, end: datetime) -> OtelSpan:
        return OtelSpan(
            trace_id=self.trace_id,
            span_id=self._id(part),
            parent_id=parent,
            name=part,
            kind=names.INTERNAL,
            start=nanoseconds_of(start),
            end=nanoseconds_of(end),
            attributes={names.RUN: self.run.id, names.CONVERSATION: self.run.id},
            resource=self._resource,
            scope=self._scope,
        )

    def _id(self, part: str, run_id: str | None = None) -> str:
        return _digest("span", self.trace_id, run_id or self.run.id, part)[:16]

    def _parent(self, entry: Entry) -> str:
        """Return the span around an entry: the step or call that it names, the attempt at its task, or the run."""
        within = _payload(entry).get("within")
        if within:
            return self._id(f"part:{within}")
        if entry.task_id in self._attempts:
            return self._attempts[entry.task_id][0]
        return self._id("run")

    def _add_entry(self, span: OtelSpan, name: str, entry: Entry, at: datetime) -> None:
        """Add all attributes from which an import restores the entry."""
        values: dict[str, Any] = {"seq": entry.seq, "kind": entry.kind.value, "subtype": entry.subtype}
        values |= {field: getattr(entry, field) for field in _FIELDS if field != "payload" or self._texts}
        if entry.at != at:
            values["at"] = to_text(entry.at)
        span.attributes[name] = _as_json({field: value for field, value in values.items() if value is not None})
        if self._texts and entry.body is not None:
            span.attributes[name + names.BODY] = entry.body

    # Records

    def _of_change(self, entry: Entry) -> Iterator[OtelSpan]:
        image, table = _payload(entry), entry.record_table or ""
        if table == "charges" and entry.subtype == "added":
            yield self._charge(image, entry.seq)
        elif table == "tasks" and "attempts" in image:
            yield from self._attempt(image)
        if table not in _CONTAINED:
            self.left_out[table] = self.left_out.get(table, 0) + 1

    def _charge(self, image: dict[str, Any], seq: int) -> OtelSpan:
        at, model = from_text(image["occurred_at"]), str(image["model"])
        task_id = image.get("task_id")
        parent = self._attempts[task_id][0] if task_id in self._attempts else self._id("run")
        span = self._empty(f"charge:{image['id']}", parent, at, at)
        span.name, span.kind = f"{names.CHAT} {model}", names.CLIENT
        came_as = str(image.get("answer_id") or "").partition(f"{names.ANSWER}{self.trace_id}:")[2]
        span.span_id = came_as or span.span_id
        read, created = int(image.get("cache_read_tokens") or 0), int(image.get("cache_create_tokens") or 0)
        facts = {"seq": seq, **{name: image[name] for name in _CHARGE_FACTS if image.get(name) is not None}}
        span.attributes |= {
            names.OPERATION: names.CHAT,
            names.PROVIDER: names.provider_of(model),
            names.REQUEST_MODEL: model,
            # By the convention, input tokens include cached ones.
            names.INPUT_TOKENS: int(image.get("input_tokens") or 0) + read + created,
            names.OUTPUT_TOKENS: int(image.get("output_tokens") or 0),
            names.CACHE_READ: read,
            names.CACHE_CREATION: created,
            names.CHARGE: _as_json(facts),
        }
        if image.get("agent"):
            span.attributes[names.AGENT] = str(image["agent"])
        return span

    def _attempt(self, image: dict[str, Any]) -> Iterator[OtelSpan]:
        """Follow a task: a claim begins an attempt, and the next change ends it."""
        task_id = str(image["id"])
        part = f"attempt:{task_id}:{image['attempts']}"
        is_running = image.get("state") == "running" and image.get("worker") is not None and image.get("leased_at") is not None
        known = self._attempts.get(task_id)
        if is_running and (known is None or known[0] != self._id(part)):
            if known is not None:
                # Another worker claimed the task before the expired lease was recorded.
                yield self._tried(*known, {**image, "outcome": "expired", "summary": None})
            self._attempts[task_id] = (self._id(part), image)
        elif not is_running and known is not None and image.get("outcome"):
            del self._attempts[task_id]
            yield self._tried(*known, image)

    def _tried(self, span_id: str, begun: dict[str, Any], image: dict[str, Any]) -> OtelSpan:
        start, worker = from_text(begun["leased_at"]), str(begun["worker"])
        span = self._empty("", self._id("run"), start, max(start, from_text(image["updated_at"])))
        span.span_id, span.name = span_id, f"{names.INVOKE_AGENT} {worker}"
        values = {names.OPERATION: names.INVOKE_AGENT, names.AGENT: worker, names.TASK: begun["id"]}
        values |= {names.ATTEMPT: begun["attempts"], f"{names.ATTEMPT}.outcome": image["outcome"]}
        if self._texts:
            values |= {f"{names.ATTEMPT}.task": image.get("title"), f"{names.ATTEMPT}.summary": image.get("summary")}
        span.attributes |= {name: value for name, value in values.items() if value is not None}
        if image["outcome"] != "done":
            span.status, span.attributes[names.ERROR_TYPE] = names.ERROR, image["outcome"]
        return span

    # The run itself

    def rest(self) -> Iterator[OtelSpan]:
        """Yield the unfinished parts and the run itself after the last entry, if the run has ended."""
        if self.run.status not in ENDED:
            return
        for part, begun in self._open.items():
            yield self._pair(part, begun, None)
        self._open.clear()
        self._attempts.clear()
        yield self._whole()

    def _whole(self) -> OtelSpan:
        run, agent = self.run, str(self.run.metadata.get("agent") or self.run.metadata.get("program") or "decklog")
        is_below = run.parent_run_id is not None and run.parent_seq is None
        parent = self._id("run", run.parent_run_id) if is_below else ""
        span = self._empty("run", parent, run.started_at, max(run.started_at, run.ended_at or run.updated_at))
        span.name = f"{names.INVOKE_AGENT} {agent}"
        span.attributes |= {names.OPERATION: names.INVOKE_AGENT, names.AGENT: agent, f"{names.RUN_FIELD}status": run.status.value}
        if is_below:
            span.attributes[names.PARENT_RUN] = run.parent_run_id
        if self._texts:
            texts = {f"{names.RUN_FIELD}{name}": getattr(run, name) for name in _RUN_TEXTS if getattr(run, name) is not None}
            metadata = {name: value for name, value in run.metadata.items() if name != "otel"}
            span.attributes |= {**texts, f"{names.RUN_FIELD}metadata": _as_json(metadata)}
        if run.status is not RunStatus.COMPLETED:
            span.status, span.attributes[names.ERROR_TYPE] = names.ERROR, run.status.value
        return span


def _payload(entry: Entry | None) -> dict[str, Any]:
    return entry.payload if entry is not None and isinstance(entry.payload, dict) else {}


# Build the encoder once: `dumps` with options builds one for each call.
_as_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


PATH = "/v1/traces"
# The statuses that OTLP declares retryable; others would be refused again.
_RETRYABLE = frozenset({429, 502, 503, 504})
_TOO_LARGE = 413
_SECONDS, _FIRST_WAIT, _LONGEST_WAIT = 30.0, 0.5, 30.0
_MOST_READ = 256 * 1024
_MOST_SHOWN = 300


class CollectorResponse(NamedTuple):
    """A collector's response; without a status, the reason why there is none."""

    status: int
    body: bytes = b""
    kind: str = ""
    retry_after: str = ""
    problem: str = ""

    @property
    def may_retry(self) -> bool:
        return self.status == 0 or self.status in _RETRYABLE


class Sender:
    """Sends batches to one address in sequence. All pauses together take at most `patience_seconds`."""

    def __init__(
        self,
        address: str,
        clock: Clock,
        *,
        headers: Mapping[str, str] | None = None,
        kind: str = otlp.PROTOBUF,
        patience_seconds: float = 60,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise Invalid(f"{address!r} is no address of a collector", hint="Such as http://localhost:4318")
        if parts.username or parts.password:
            raise Invalid("an address holds no password", hint="Send it as a header: --header authorization='Basic …'")
        self.shown = f"{parts.scheme}://{parts.netloc}"
        path = parts.path.rstrip("/")
        self._path = path if path.endswith(PATH) else path + PATH
        connect = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._connection = connect(parts.hostname, parts.port, timeout=_SECONDS)
        own = {"Content-Type": kind, "Content-Encoding": "gzip", "User-Agent": "decklog"}
        self._headers = {**checked_headers(headers or {}), **own}
        self._kind = kind
        self._clock = clock
        self._patience = patience_seconds
        self._wait = wait
        self.rejected = 0
        self.messages: list[str] = []

    def send(self, spans: Sequence[OtelSpan]) -> None:
        """Send spans, in halves if they are too many; collect a collector's reports about rejected ones."""
        body = gzip.compress(otlp.encoded(REQUEST, otlp.request_of(spans), self._kind), 6, mtime=0)
        answer = self._send_with_retries(body)
        if answer.status == _TOO_LARGE and len(spans) > 1:
            middle = len(spans) // 2
            self.send(spans[:middle])
            self.send(spans[middle:])
        elif 200 <= answer.status < 300:
            self._take(answer)
        else:
            raise self._refusal(answer, len(spans))

    def close(self) -> None:
        self._connection.close()

    def _send_with_retries(self, body: bytes) -> CollectorResponse:
        pause = _FIRST_WAIT
        while True:
            answer = self._post(body)
            if not answer.may_retry:
                return answer
            asked = self._retry_after(answer.retry_after)
            seconds = pause if asked is None else asked
            if seconds > self._patience:
                return answer
            self._patience -= seconds
            self._wait(seconds)
            pause = min(pause * 2, _LONGEST_WAIT)

    def _post(self, body: bytes) -> CollectorResponse:
        """Post once. Redirects are not followed: the headers are for this address alone."""
        try:
            self._connection.request("POST", self._path, body, self._headers)
            answer = self._connection.getresponse()
            values = answer.read(_MOST_READ)
        except (OSError, HTTPException) as problem:
            self._connection.close()
            return CollectorResponse(0, problem=str(problem) or type(problem).__name__)
        kind = (answer.getheader("Content-Type") or "").partition(";")[0].strip().lower()
        if not answer.isclosed():
            # Close the connection: the unread rest would be parsed as the next response.
            self._connection.close()
        return CollectorResponse(answer.status, values, kind, answer.getheader("Retry-After") or "")

    def _retry_after(self, text: str) -> float | None:
        """Parse the pause that a collector requests: a number of seconds, or a time."""
        if text.strip().isdigit():
            return float(text)
        try:
            return max(0.0, (parsedate_to_datetime(text) - self._clock.now()).total_seconds())
        except (ValueError, TypeError):
            return None

    def _take(self, answer: CollectorResponse) -> None:
        """Parse the rejected spans of a request that was accepted otherwise."""
        if not answer.body or answer.kind not in (otlp.JSON, otlp.PROTOBUF):
            return
        partial = otlp.decoded(RESPONSE, answer.body, answer.kind).get("partialSuccess") or {}
        self.rejected += int(partial.get("rejectedSpans") or 0)
        if text := str(partial.get("errorMessage") or "")[:_MOST_SHOWN]:
            self.messages = [*self.messages[:20], text]

    def _refusal(self, answer: CollectorResponse, count: int) -> Denied | Invalid | Unreachable:
        if answer.status == 0:
            return Unreachable(
                f"{self.shown} was not reached: {answer.problem}", hint="Send the run again: it is the same spans."
            )
        values = f"{self.shown} answered {answer.status} to {count} spans{self._reason(answer)}"
        if answer.may_retry:
            return Unreachable(values, hint="Send the run again later: it is the same spans.", status=answer.status)
        if answer.status in (401, 403):
            return Denied(values, hint="Give what it asks for: --header authorization='Bearer …'", status=answer.status)
        return Invalid(values, status=answer.status)

    def _reason(self, answer: CollectorResponse) -> str:
        try:
            known = answer.kind in (otlp.JSON, otlp.PROTOBUF)
            text = str(otlp.decoded(STATUS, answer.body, answer.kind).get("message") or "") if known else ""
        except Invalid:
            text = ""
        text = text or (answer.body.decode("utf-8", "replace") if answer.kind.startswith("text/plain") else "")
        return f": {text.strip()[:_MOST_SHOWN]}" if text.strip() else ""


def checked_headers(given: Mapping[str, str]) -> dict[str, str]:
    """Raise Invalid for a header that could end its line."""
    for name, value in given.items():
        if not name.strip() or not (name + value).isprintable() or ":" in name or " " in name:
            raise Invalid(f"{name!r} is no header", hint="Such as --header x-api-key=VALUE")
    return dict(given)


# Collectors accept a batch of this size by default.
_MOST_SPANS, _MOST_CHARACTERS = 512, 1024**2
# Pending spans are sent after this time without new entries.
_QUIET_SECONDS = 2.0


class OtlpExport:
    """Exports runs in batches."""

    def __init__(
        self,
        log: Decklog,
        run_ids: Sequence[str],
        *,
        texts: bool = True,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> None:
        self._log = log
        self._run_ids = run_ids
        self._runs = self._load_with_children(run_ids)
        self._texts = texts
        self._progress = progress
        self._batch: list[OtelSpan] = []
        self._room = _MOST_CHARACTERS
        self.counts = {"runs": 0, "spans": 0, "waiting": 0}
        self.left_out: dict[str, int] = {}

    def _load_with_children(self, run_ids: Sequence[str]) -> list[Run]:
        """Return the runs, parents before children. Forks are separate."""
        found: dict[str, Run] = {}
        waiting = [self._log.runs.get(run_id) for run_id in reversed(run_ids)]
        while waiting:
            run = waiting.pop()
            if run.id in found:
                continue
            found[run.id] = run
            below = find_all(self._log.runs.find, parent_run_id=run.id, oldest_first=True)
            waiting += [child for child in below if child.parent_seq is None]
        return list(found.values())

    # Targets

    def send(self, sender: Sender, *, follow: bool = False) -> dict[str, Any]:
        """Send to a collector. With `follow`, continue with the first run until it has ended."""
        try:
            self._hand_on(sender.send, follow=follow)
        finally:
            sender.close()
        values = {"to": sender.shown, **self.counts, "rejected": sender.rejected, "messages": sender.messages}
        return {**values, "left_out": self.left_out}

    def write(self, path: str, *, replace: bool = False) -> dict[str, Any]:
        """Write a file with a line for each batch, as collectors do."""
        with NewFile(path, replace=replace) as out:
            self._hand_on(lambda spans: out.write(otlp.encoded(REQUEST, otlp.request_of(spans), otlp.JSON).decode() + "\n"))
            out.publish()
        return {"path": path, **self.counts, "left_out": self.left_out}

    # Batches

    def _hand_on(self, sink: Sink, *, follow: bool = False) -> None:
        first, *rest = self._runs
        self._export_run(first, sink, follow=follow)
        if follow:
            # New child runs may have begun meanwhile.
            _, *rest = self._load_with_children(self._run_ids)
        for run in rest:
            self._export_run(run, sink, follow=False)
        self._flush(sink)

    def _export_run(self, run: Run, sink: Sink, *, follow: bool) -> None:
        from decklog import __version__

        spans = RunSpans(self._log, run, texts=self._texts, version=__version__)
        for entry in self._entries(run, sink, follow=follow):
            for span in spans.of(entry):
                self._add(span, sink)
        # The run may have ended meanwhile.
        spans.run = self._log.runs.get(run.id)
        for span in spans.rest():
            self._add(span, sink)
        self.counts["runs"] += 1
        self.counts["waiting"] += spans.waiting
        for table, count in spans.left_out.items():
            self.left_out[table] = self.left_out.get(table, 0) + count

    def _entries(self, run: Run, sink: Sink, *, follow: bool) -> Iterator[Entry]:
        """Yield a run's entries; send pending spans after a while without new entries."""
        last = 0
        while True:
            # Check this first, so that all entries before the end of the run are read.
            has_ended = self._log.runs.get(run.id).status in ENDED
            is_waiting = follow and not has_ended
            for entry in self._log.journal.tail(
                run.id, after=last, follow=is_waiting, timeout_seconds=_QUIET_SECONDS if is_waiting else None
            ):
                last = entry.seq
                yield entry
            if not is_waiting:
                return
            self._flush(sink)

    def _add(self, span: OtelSpan, sink: Sink) -> None:
        self._batch.append(span)
        self._room -= sum(len(value) for value in span.attributes.values() if isinstance(value, str)) + 500
        if len(self._batch) >= _MOST_SPANS or self._room <= 0:
            self._flush(sink)

    def _flush(self, sink: Sink) -> None:
        batch, self._batch, self._room = self._batch, [], _MOST_CHARACTERS
        if not batch:
            return
        sink(batch)
        self.counts["spans"] += len(batch)
        if self._progress:
            self._progress("spans", self.counts["spans"], 0)
