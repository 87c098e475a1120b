"""Scores a batch: how many secrets are found, how much of the rest is eaten, how many harmless texts are disturbed."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from decklog.redact import redact
from tests.redact.batches import first, second
from tests.redact.batches.drawing import Case, is_eaten, leaks


class Score(NamedTuple):
    """A batch of secrets: those that can still be read, and those with which more than the secret went."""

    size: int
    missed: list[tuple[Case, str]]
    eaten: list[tuple[Case, str]]

    def by(self, field: str) -> Counter[str]:
        """Count what was missed by `context` or by `shape`."""
        return Counter(getattr(case, field) for case, _ in self.missed)


def score(cases: Iterable[Case]) -> Score:
    """Redact a batch and look at what is left."""
    size, missed, eaten = 0, [], []
    for case in cases:
        size += 1
        shown = redact(case.text)
        if leaks(case, shown):
            missed.append((case, shown))
        elif is_eaten(case, shown):
            eaten.append((case, shown))
    return Score(size, missed, eaten)


def disturbed(texts: Iterable[str]) -> tuple[int, list[tuple[str, str]]]:
    """Give the size of a batch of harmless texts, and those that redaction changes."""
    shown = [(text, redact(text)) for text in texts]
    return len(shown), [(text, after) for text, after in shown if text != after]


def main() -> None:
    """Print how the batches for measuring score."""
    for batch in (first, second):
        result = score(batch.secrets.cases())
        size, changed = disturbed(batch.harmless.texts())
        print(batch.__doc__)
        print(f"  secrets  {result.size:5}  found     {1 - len(result.missed) / result.size:7.2%}")
        print(f"                  more gone {len(result.eaten) / result.size:7.2%}")
        print(f"  harmless {size:5}  disturbed {len(changed) / size:7.2%}")


if __name__ == "__main__":
    main()
