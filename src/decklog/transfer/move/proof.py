"""Proving that a log arrived whole: every entry, every text, every record.

The proof rests on what the target gives back when it is read again, not on what was sent to it. In one consistent read of the
target, every entry is read, its hash is made anew from its content and from the hash before it, and the last hash of each
stream is compared with the source's. An entry that is missing, altered or in another place breaks the chain at that place.
What the chain holds only by digest, the texts that retention may drop, is then looked for: none may be missing that the source
has.
"""

from typing import TYPE_CHECKING

from decklog.core.errors import Damaged
from decklog.journal.replication import Replication
from decklog.journal.verify import Verifier
from decklog.transfer.move.table_check import table_check
from decklog.transfer.progress import Progress, silent
from decklog.transfer.reading import digest_batches_of

if TYPE_CHECKING:
    from decklog.journal.verify import Verification
    from decklog.log import Decklog
    from decklog.stores.results.journal import StreamHead


_HINT = "The source is as it was. Move it into an empty target."


class MoveProof:
    """Compares a log with the one that it came from."""

    def __init__(self, source: "Decklog", target: "Decklog", progress: Progress = silent) -> None:
        self._source = source
        self._target = target
        self._progress = progress

    def prove(self, heads: "list[StreamHead]") -> int:
        """Prove that the target has all that the source had up to these heads; give how many entries were read."""
        self._progress("verifying the target", 0, 0)
        entries = sum(int(head["seq"]) for head in heads)
        with table_check(self._target, entries) as tables:
            walked = self._target.db.read(lambda: self._walk(heads))
            _refuse(tables())
        self._source.db.read(lambda: self._target.db.read(lambda: self._look_for_texts(heads)))
        self._look_for_blobs(heads)
        return walked

    def _walk(self, heads: "list[StreamHead]") -> int:
        result = Verifier(self._target.db, self._target.record_classes()).run_chains()
        _refuse(result)
        self.compare(heads)
        return result.entries

    def compare(self, heads: "list[StreamHead]") -> None:
        """Compare the heads; where every entry was walked, a head's hash stands for all of them."""
        there = {head["stream"]: head["hash"] for head in self._target.journal.heads()}
        for head in heads:
            if there.get(head["stream"]) != head["hash"]:
                raise Damaged(f"{head['stream']} ended differently in the target", hint=_HINT, stream=head["stream"])

    def _look_for_blobs(self, heads: "list[StreamHead]") -> None:
        """Make sure that the target lacks no blob of the source, but for those that came with entries after these heads."""
        for digests in digest_batches_of(self._source):
            lacking = Replication.of(self._target).lacking_blobs(digests)
            if lacking and self._source.journal.heads() == heads:
                raise Damaged(f"blob {lacking[0]} did not arrive in the target", hint=_HINT, digest=lacking[0])

    def _look_for_texts(self, heads: "list[StreamHead]") -> None:
        """Make sure that the target lacks no text that the source still has."""
        for head in heads:
            stream = head["stream"]
            in_source = Replication.of(self._source).lacking_texts(stream)
            latest = 0
            for seq in Replication.of(self._target).lacking_texts(stream):
                while latest < seq:
                    latest = next(in_source, seq + 1)
                if latest != seq:
                    raise Damaged(
                        f"a text of entry {stream}:{seq} did not arrive in the target", hint=_HINT, stream=stream, seq=seq
                    )


def _refuse(result: "Verification") -> None:
    if result.first is not None:
        place = f"{result.first.stream}:{result.first.seq} " if result.first.stream else ""
        raise Damaged(f"the target does not verify: {place}{result.first.what}", hint=_HINT)
