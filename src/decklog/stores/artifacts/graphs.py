"""State of other frameworks' graphs: checkpoints of threads, pending writes, and shared items.

A thread is a run. The bytes of a checkpoint are in the framework's format, stored once by digest. The adapter redacts them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from decklog.core.clock import to_text
from decklog.core.errors import NotFound
from decklog.db.where import Where
from decklog.journal import blobs
from decklog.records.fork_rules import FORK_RUN, ForkRule, Reset
from decklog.records.operations import reads, within_lease
from decklog.records.record import Page, Record
from decklog.stores.base import Store
from decklog.stores.of_run import lock_run


class Encoded(NamedTuple):
    """A value of LangGraph as it is stored."""

    encoding: str
    content: bytes
    redacted: bool


_PAGE = 100


@dataclass(frozen=True, kw_only=True)
class GraphCheckpoint(Record):
    """A checkpoint of a graph's thread; a subgraph has its own namespace."""

    table = "graph_checkpoints"
    identity = ("run_id", "namespace", "checkpoint_id")
    fork = ForkRule(
        "The fork is a separate thread; nothing of it is written to, or removed with, the parent's.",
        fields={"thread_id": FORK_RUN, "graph_run_id": Reset()},
        same_ids=("checkpoint_id", "parent_id"),
    )
    blob_columns = ("digest",)

    run_id: str
    namespace: str
    checkpoint_id: str
    thread_id: str
    encoding: str
    digest: str
    saved_at: datetime
    parent_id: str | None = None
    metadata: dict[str, object] = field(default_factory=dict)
    graph_run_id: str | None = None
    redacted: bool = False


@dataclass(frozen=True, kw_only=True)
class GraphWrite(Record):
    """What a task of a graph wrote to a channel after a checkpoint."""

    table = "graph_writes"
    identity = ("run_id", "namespace", "checkpoint_id", "task_id", "number")
    fork = ForkRule("What was written after a checkpoint goes with it.", same_ids=("checkpoint_id", "task_id"))
    # The task is a task of the graph, not of the run.
    task_column = None
    blob_columns = ("digest",)

    run_id: str
    namespace: str
    checkpoint_id: str
    task_id: str
    number: int
    task_path: str
    channel: str
    encoding: str
    digest: str
    saved_at: datetime
    redacted: bool = False


@dataclass(frozen=True, kw_only=True)
class GraphItem(Record):
    """Something that graphs share, under a key in a namespace whose parts are joined by dots."""

    table = "graph_items"
    identity = ("namespace", "key")
    home = "@memory"

    namespace: str
    key: str
    value: dict[str, object]
    created_at: datetime
    updated_at: datetime
    # The indexed paths of the value; None means the store's setting, an empty list means not indexed.
    indexed: list[str] | None = None
    ttl_seconds: float | None = None
    expires_at: datetime | None = None


class Graphs(Store):
    """The verbs of `states` for graphs of other frameworks."""

    @reads
    def graph_checkpoints(
        self, run_id: str, *, namespace: str | None = None, limit: int = 20, after: str | None = None
    ) -> Page[GraphCheckpoint]:
        """List the checkpoints of a graph's thread, newest first."""
        where = Where(GraphCheckpoint, run_id=run_id, namespace=namespace)
        order = ("checkpoint_id", "namespace")
        return self._page(GraphCheckpoint, where, order=order, limit=limit, after=after, descending=True)

    @reads
    def graph_items(self, *, namespace: str | None = None, limit: int = 20, after: str | None = None) -> Page[GraphItem]:
        """List the items that graphs share in one namespace, or in all."""
        where = Where(GraphItem, namespace=namespace)
        return self._page(GraphItem, where, order=("namespace", "key"), limit=limit, after=after)

    # For adapters, which pass bytes and objects. Not verbs, because a command line could not pass them.

    def save_graph_checkpoint(self, place: dict[str, Any], encoded: Encoded, metadata: dict[str, Any]) -> None:
        """Store a checkpoint; one with the same id is replaced."""

        def save() -> None:
            self._hold(place["run_id"])
            image, redacted = self._checkpoint_image(place, encoded, metadata, self._now())
            if not self._add_new(GraphCheckpoint, image, redacted=redacted):
                self._replace(GraphCheckpoint, {**image, "metadata": metadata})

        within_lease(self._db, save)

    def import_graph_checkpoint(
        self, place: dict[str, Any], encoded: Encoded, metadata: dict[str, Any], saved_at: datetime
    ) -> None:
        """Import a checkpoint with its original time; an existing one is kept."""
        self._hold(place["run_id"])
        image, redacted = self._checkpoint_image(place, encoded, metadata, saved_at)
        self._add_new(GraphCheckpoint, image, redacted=redacted)

    def _checkpoint_image(
        self, place: dict[str, Any], encoded: Encoded, metadata: dict[str, Any], saved_at: datetime
    ) -> tuple[dict[str, Any], bool]:
        """Return the columns of a checkpoint, and whether anything was redacted."""
        graph_run = metadata.get("run_id")
        named, is_cut = self._db.values.bind({**place, "graph_run_id": graph_run if isinstance(graph_run, str) else None})
        imported, is_cleaned = self._db.values.bind_json("metadata", metadata)
        kept = {"encoding": encoded.encoding, "digest": blobs.store_blob(self._db, encoded.content)}
        facts = {"saved_at": to_text(saved_at), "metadata": imported, "redacted": int(encoded.redacted)}
        return {**named, **kept, **facts}, is_cut or is_cleaned

    def _hold(self, run_id: str) -> None:
        """Lock a run for writing. Memoized values of the run stay valid while it is locked."""
        if self._db.locks_rows or ("head", run_id) not in self._db.memo:
            lock_run(self._db, run_id)

    def _add_new(self, record_class: type[Record], image: dict[str, Any], *, redacted: bool) -> bool:
        """Insert a row of bound values and its entry. Return False if the key exists.

        Digests and times are not searched for secrets.
        """
        names, values = ", ".join(image), ", ".join(f":{name}" for name in image)
        sql = f"insert into {record_class.table} ({names}) values ({values}) on conflict do nothing"
        if not self._db.count(sql, image):
            return False
        self._write_added(record_class, image, None, redacted)
        return True

    def _replace(self, record_class: type[Record], image: dict[str, Any]) -> None:
        """Replace the values of an existing row."""
        changes = {name: value for name, value in image.items() if name not in record_class.identity}
        self._try_update(record_class, [image[name] for name in record_class.identity], changes)

    def save_graph_writes(self, place: dict[str, Any], writes: Sequence[tuple[int, str, Encoded]], *, replace: bool) -> None:
        """Store the writes of a task by number and channel. Existing ones are kept unless `replace` is set."""

        def save() -> None:
            self._hold(place["run_id"])
            for number, channel, encoded in writes:
                image, redacted = self._write_image({**place, "number": number, "channel": channel}, encoded)
                if not self._add_new(GraphWrite, image, redacted=redacted) and replace:
                    self._replace(GraphWrite, image)

        within_lease(self._db, save)

    def import_graph_writes(self, imported: Sequence[tuple[dict[str, Any], Encoded]]) -> None:
        """Import writes of tasks, each with its place, number and channel; existing ones are kept."""
        for run_id in sorted({place["run_id"] for place, _ in imported}):
            self._hold(run_id)
        for place, encoded in imported:
            image, redacted = self._write_image(place, encoded)
            self._add_new(GraphWrite, image, redacted=redacted)

    def _write_image(self, place: dict[str, Any], encoded: Encoded) -> tuple[dict[str, Any], bool]:
        """Return the columns of a write, and whether anything was redacted."""
        named, is_cut = self._db.values.bind(place)
        kept = {"encoding": encoded.encoding, "digest": blobs.store_blob(self._db, encoded.content)}
        return {**named, **kept, "saved_at": to_text(self._now()), "redacted": int(encoded.redacted)}, is_cut

    def graph_checkpoint(self, run_id: str, namespace: str, checkpoint_id: str | None) -> GraphCheckpoint | None:
        """Return a checkpoint by its id, or the newest of a namespace."""
        if checkpoint_id is not None:
            return self._db.read(lambda: self._seek(GraphCheckpoint, (run_id, namespace, checkpoint_id)))
        order = "checkpoint_id desc"
        return self._db.read(lambda: self._seek_by(GraphCheckpoint, order=order, run_id=run_id, namespace=namespace))

    def each_graph_checkpoint(self, *, before: str | None = None, **equal: str | None) -> Iterator[GraphCheckpoint]:
        """Yield matching checkpoints, newest first, loaded page by page."""
        order, after = ("checkpoint_id", "run_id", "namespace"), None
        while True:
            where = Where(GraphCheckpoint, **equal)
            if before is not None:
                where.add("checkpoint_id < :before", before=before)
            page = self._db.read(
                lambda where=where, after=after: self._page(  # type: ignore[misc]
                    GraphCheckpoint, where, order=order, limit=_PAGE, after=after, descending=True
                )
            )
            yield from page
            if (after := page.next) is None:
                return

    def graph_writes(self, run_id: str, namespace: str, checkpoint_id: str) -> list[GraphWrite]:
        """Return the writes after a checkpoint, in the order in which a graph applies them."""
        place: dict[str, Any] = {"run_id": run_id, "namespace": namespace, "checkpoint_id": checkpoint_id}
        return self._db.read(lambda: self._select_by(GraphWrite, order="task_path, task_id, number", **place))

    def graph_bytes(self, digest: str) -> bytes:
        """Return the bytes of a checkpoint or a write."""
        content = self._db.read(lambda: blobs.load_blob(self._db, digest))
        if content is None:
            raise NotFound(f"the bytes {digest} are no longer kept; only their digest is on record", digest=digest)
        return content

    def copy_graph(self, run_id: str, to_run_id: str, to_thread_id: str) -> None:
        """Copy all checkpoints and writes of a thread to another one."""

        def copy() -> None:
            lock_run(self._db, to_run_id)
            for record_class, changes in ((GraphCheckpoint, {"thread_id": to_thread_id}), (GraphWrite, {})):
                for record in self._select_by(record_class, order=", ".join(record_class.identity), run_id=run_id):
                    self._add(record_class, **{**record.values(), **changes, "run_id": to_run_id})

        within_lease(self._db, copy)

    def remove_graph(self, run_id: str, checkpoints: Sequence[tuple[str, str]] | None = None) -> None:
        """Remove checkpoints by namespace and id, or all of a thread, with their writes."""
        places = [{"run_id": run_id}]
        if checkpoints is not None:
            places = [{"run_id": run_id, "namespace": namespace, "checkpoint_id": name} for namespace, name in checkpoints]

        def remove() -> None:
            for place in places:
                condition = " and ".join(f"{name} = :{name}" for name in place)
                for kind in (GraphWrite, GraphCheckpoint):
                    self._remove(kind, f"delete from {kind.table} where {condition} returning *", **place)

        within_lease(self._db, remove)

    # Items

    def save_graph_item(
        self, namespace: str, key: str, value: dict[str, Any], *, indexed: list[str] | None, ttl_seconds: float | None
    ) -> None:
        """Store an item, replacing an existing one, in the caller's transaction."""
        now = self._now()
        given = {"namespace": namespace, "key": key, "value": value, "indexed": indexed, "ttl_seconds": ttl_seconds}
        times = {"created_at": now, "updated_at": now, "expires_at": _later(now, ttl_seconds)}
        self._upsert(GraphItem, {**given, **times}, keep=("created_at",))

    def renew_graph_item(self, item: GraphItem) -> None:
        """Extend the lifetime of an item that was read."""
        now = self._now()
        self._try_update(GraphItem, (item.namespace, item.key), {"expires_at": _later(now, item.ttl_seconds)})

    def remove_graph_item(self, namespace: str, key: str) -> None:
        """Remove an item if it exists."""
        if self._seek(GraphItem, (namespace, key)) is not None:
            self._remove_one(GraphItem, (namespace, key))

    def remove_expired_graph_items(self) -> int:
        """Remove expired items, and return their number."""
        sql = "delete from graph_items where expires_at is not null and expires_at <= :now returning *"
        return within_lease(self._db, lambda: len(self._remove(GraphItem, sql, now=self._now())))

    def graph_item(self, namespace: str, key: str) -> GraphItem | None:
        """Return an item that has not expired."""
        found = self._seek(GraphItem, (namespace, key))
        return None if found is None or _is_over(found, self._now()) else found

    def graph_items_below(self, prefix: str) -> list[GraphItem]:
        """Return the items of a namespace and of all below it, newest first; without a prefix all items."""
        # Parts are joined by dots, and `/` follows `.` in ASCII.
        condition = "where namespace = :prefix or (namespace >= :start and namespace < :end)" if prefix else ""
        sql = f"select * from graph_items {condition} order by updated_at desc, namespace, key"
        bound = {"prefix": prefix, "start": f"{prefix}.", "end": f"{prefix}/"} if prefix else {}
        now = self._now()
        return [item for item in self._select(GraphItem, sql, **bound) if not _is_over(item, now)]


def _later(now: datetime, seconds: float | None) -> datetime | None:
    return None if seconds is None else now + timedelta(seconds=seconds)


def _is_over(item: GraphItem, now: datetime) -> bool:
    return item.expires_at is not None and item.expires_at <= now
