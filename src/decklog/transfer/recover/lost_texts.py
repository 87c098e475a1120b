"""Telling which texts and bytes a recovered log names and nobody has, so that a later loss is not taken for this one."""

from typing import TYPE_CHECKING

from decklog.journal.entry import EntryKind
from decklog.journal.texts import RECOVERED
from decklog.journal.verify import Verifier

if TYPE_CHECKING:
    from decklog.log import Decklog

_TOGETHER = 500


def tell_lost_texts(log: "Decklog") -> None:
    """Write an event into each stream that names texts which were not found."""
    verifier = Verifier(log.db, log.record_classes())
    verifier.run_entries()
    for stream, digests in verifier.texts.gone.items():
        lost = sorted(digests)
        for start in range(0, len(lost), _TOGETHER):
            some = lost[start : start + _TOGETHER]
            said = f"Recovered from a damaged file: {len(some)} texts are missing; their digests stay."
            log.journal.append(stream, said, kind=EntryKind.EVENT, subtype=RECOVERED, payload={"lost": some})
