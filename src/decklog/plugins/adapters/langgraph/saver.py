"""A checkpointer for LangGraph: each thread is a run, each checkpoint and each write a record of it."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from hashlib import sha256
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from decklog import redaction
from decklog.agents.texts import storable_value
from decklog.aio.log import AsyncDecklog
from decklog.core.errors import Invalid
from decklog.importing.writer import run_id_of
from decklog.log import Decklog
from decklog.plugins.adapters.loops.calls import run_off_loop
from decklog.plugins.langgraph_values import pack, unpack
from decklog.stores.artifacts.graphs import Encoded, GraphCheckpoint, GraphWrite

_CHANNELS = "channel_values"
# LangGraph makes these itself: ids, times, and the numbers of versions.
_OF_LANGGRAPH = frozenset({"v", "id", "ts", "channel_versions", "versions_seen", "updated_channels"})
_MOST_REMEMBERED = 100_000


def _pieces(opened: Any) -> Iterator[tuple[str, list[Any]]]:
    """Take a value apart as far as it grows from step to step: the channels of a checkpoint, and the items of lists."""
    if isinstance(opened, dict) and _CHANNELS in opened:
        rest = {name: item for name, item in opened.items() if name not in _OF_LANGGRAPH and name != _CHANNELS}
        if rest:
            yield "", [rest]
        for name, channel in opened[_CHANNELS].items():
            yield str(name), _items(channel)
    else:
        yield "", _items(opened)


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


_KEPT_WHOLE = "counters_since_delta_snapshot"


class DecklogSaver(BaseCheckpointSaver[int]):
    """Keeps the checkpoints of a graph's threads in a log: `builder.compile(checkpointer=DecklogSaver(log))`."""

    def __init__(self, log: Decklog | AsyncDecklog, *, serde: SerializerProtocol | None = None) -> None:
        super().__init__(serde=serde)
        self.log = log.log if isinstance(log, AsyncDecklog) else log
        self._known: set[str] = set()
        # Digests of values without secrets. Scanning a long conversation at each step takes longer than all else.
        self._clean: set[bytes] = set()

    # Saving

    def _encoded(self, value: Any) -> Encoded:
        """Write a value by a graph's serializer, and take the secrets out."""
        kind, content = self.serde.dumps_typed(value)
        if kind != "msgpack":
            # Null, bytes as they are, or what the serializer has encrypted.
            return Encoded(kind, content, False)
        opened = unpack(content)
        if all(self._is_clean(name, piece) for name, pieces in _pieces(opened) for piece in pieces):
            return Encoded(kind, content, False)
        clean, changed = redaction.scan_json(opened)
        return Encoded(kind, pack(clean) if changed else content, changed)

    def _is_clean(self, name: str, piece: Any) -> bool:
        """Return whether a piece of a value holds no secret; most pieces were in the checkpoint before, too."""
        digest = sha256(pack([name, piece])).digest()
        if digest in self._clean:
            return True
        if redaction.scan_json({name: piece})[1]:
            return False
        if len(self._clean) >= _MOST_REMEMBERED:
            self._clean.clear()
        self._clean.add(digest)
        return True

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,  # noqa: ARG002
    ) -> RunnableConfig:
        """Keep a checkpoint; one of the same id is replaced."""
        self._saving(config, checkpoint, metadata)()
        self._saved(config)
        return _config(_thread(config), _namespace(config), checkpoint["id"])

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,  # noqa: ARG002
    ) -> RunnableConfig:
        await run_off_loop(self.log, self._saving(config, checkpoint, metadata))
        self._saved(config)
        return _config(_thread(config), _namespace(config), checkpoint["id"])

    def _saving(self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata) -> partial[None]:
        """Prepare what is to be written, before waiting for the writer."""
        thread = _thread(config)
        place = {
            "run_id": run_id_of(thread),
            "thread_id": thread,
            "namespace": _namespace(config),
            "checkpoint_id": checkpoint["id"],
            "parent_id": config["configurable"].get("checkpoint_id"),
        }
        values = storable_value(dict(get_checkpoint_metadata(config, metadata)))
        return partial(self._save, place, self._encoded(checkpoint), values)

    def _save(self, place: dict[str, Any], content: Any, metadata: dict[str, Any]) -> None:
        self._begin(place["thread_id"])
        self.log.states.save_graph_checkpoint(place, content, metadata)

    def _begin(self, thread: str) -> None:
        """Start the run of a thread that has none."""
        run_id = run_id_of(thread)
        if run_id not in self._known:
            facts: dict[str, object] = {"langgraph": {"thread_id": thread}}
            self.log.runs.start(f"Thread {thread} of LangGraph", run_id=run_id, metadata=facts)

    def _saved(self, config: RunnableConfig) -> None:
        """Remember that a thread has a run; before the commit, others could not see it and it might be undone."""
        if not self.log.is_in_transaction:
            self._known.add(run_id_of(_thread(config)))

    def put_writes(self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = "") -> None:
        """Keep what a task wrote after a checkpoint."""
        self._writing(config, writes, task_id, task_path)()
        self._saved(config)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await run_off_loop(self.log, self._writing(config, writes, task_id, task_path))
        self._saved(config)

    def _writing(self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str) -> partial[None]:
        place = {
            "run_id": run_id_of(_thread(config)),
            "namespace": _namespace(config),
            "checkpoint_id": str(config["configurable"]["checkpoint_id"]),
            "task_id": task_id,
            "task_path": task_path,
        }
        values = [
            (WRITES_IDX_MAP.get(channel, number), channel, self._encoded(value)) for number, (channel, value) in enumerate(writes)
        ]
        # Errors and interrupts of a task have fixed numbers, and the newest counts.
        replace = all(channel in WRITES_IDX_MAP for channel, _ in writes)
        return partial(self._save_writes, _thread(config), place, values, replace)

    def _save_writes(self, thread: str, place: dict[str, Any], values: list[Any], replace: bool) -> None:
        self._begin(thread)
        self.log.states.save_graph_writes(place, values, replace=replace)

    # Reading

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint by its id, or the newest one of its thread."""
        run_id, wanted = run_id_of(_thread(config)), get_checkpoint_id(config)
        found = self.log.states.graph_checkpoint(run_id, _namespace(config), wanted)
        return None if found is None else self._tuple(found)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await asyncio.to_thread(self.get_tuple, config)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints of one thread or all, newest first."""
        equal: dict[str, str | None] = {}
        if config is not None:
            namespace = config["configurable"].get("checkpoint_ns")
            equal = {"run_id": run_id_of(_thread(config)), "namespace": namespace, "checkpoint_id": get_checkpoint_id(config)}
        left = limit
        for found in self.log.states.each_graph_checkpoint(before=None if before is None else get_checkpoint_id(before), **equal):
            if left == 0:
                return
            if all(found.metadata.get(name) == value for name, value in (filter or {}).items()):
                yield self._tuple(found)
                left = None if left is None else left - 1

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        steps = self.list(config, filter=filter, before=before, limit=limit)
        while (found := await asyncio.to_thread(next, steps, None)) is not None:
            yield found

    def _tuple(self, found: GraphCheckpoint) -> CheckpointTuple:
        written = self.log.states.graph_writes(found.run_id, found.namespace, found.checkpoint_id)
        parent = found.parent_id and _config(found.thread_id, found.namespace, found.parent_id)
        metadata: Any = found.metadata
        return CheckpointTuple(
            _config(found.thread_id, found.namespace, found.checkpoint_id),
            self._value(found),
            metadata,
            parent or None,
            [(write.task_id, write.channel, self._value(write)) for write in written],
        )

    def _value(self, record: GraphCheckpoint | GraphWrite) -> Any:
        return self.serde.loads_typed((record.encoding, self.log.states.graph_bytes(record.digest)))

    def get_next_version(self, current: Any, channel: None) -> Any:
        """Count on: in texts, where a thread came from a saver that counts in them."""
        if isinstance(current, str):
            return f"{int(current.partition('.')[0]) + 1:032}.{0:016}"
        return super().get_next_version(current, channel)

    # Copying and removing

    def delete_thread(self, thread_id: str) -> None:
        """Remove all checkpoints and writes of a thread; its run and journal stay."""
        self.log.states.remove_graph(run_id_of(str(thread_id)))

    async def adelete_thread(self, thread_id: str) -> None:
        await run_off_loop(self.log, partial(self.delete_thread, thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Remove the checkpoints that these runs of a graph made, with what was written after them."""
        with self.log.transaction():
            for graph_run_id in run_ids:
                for found in [*self.log.states.each_graph_checkpoint(graph_run_id=graph_run_id)]:
                    self.log.states.remove_graph(found.run_id, [(found.namespace, found.checkpoint_id)])

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints and writes of a thread to another one."""
        with self.log.transaction():
            self._begin(target_thread_id)
            self.log.states.copy_graph(run_id_of(source_thread_id), run_id_of(target_thread_id), target_thread_id)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Remove all checkpoints of threads but the newest of each namespace, or, by `delete`, all.

        A namespace whose newest checkpoint is values by what came before it (`DeltaChannel`) is kept whole.
        """
        if strategy not in ("keep_latest", "delete"):
            raise Invalid(f"threads are pruned by keep_latest or delete, not by {strategy!r}", field="strategy")
        with self.log.transaction():
            for thread in thread_ids:
                run_id = run_id_of(thread)
                self.log.states.remove_graph(run_id, None if strategy == "delete" else self._older(run_id))

    def _older(self, run_id: str) -> Sequence[tuple[str, str]]:
        newest: dict[str, GraphCheckpoint] = {}
        older = []
        for found in self.log.states.each_graph_checkpoint(run_id=run_id):
            first = newest.setdefault(found.namespace, found)
            if first is not found and _KEPT_WHOLE not in first.metadata:
                older.append((found.namespace, found.checkpoint_id))
        return older

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await asyncio.to_thread(partial(self.prune, thread_ids, strategy=strategy))


def _thread(config: RunnableConfig) -> str:
    return str(config["configurable"]["thread_id"])


def _namespace(config: RunnableConfig) -> str:
    return str(config["configurable"].get("checkpoint_ns") or "")


def _config(thread: str, namespace: str, checkpoint_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id}}
