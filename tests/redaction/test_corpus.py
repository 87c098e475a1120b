"""The labelled corpus: recall and false positives, and what the corpus itself must hold."""

from pathlib import Path

import pytest

from decklog.redaction import redact
from tests.redaction import corpus
from tests.searches import FULL

# Every text in full, else one of several.
_STEP = 1 if FULL else 6
# The least recall and the most false positives for each writer. Held-out writers never train the judge.
_HELD_TO = {
    "held_out/writer-b": (0.99, 0.02),
    "held_out/writer-e": (0.98, 0.005),
    "held_out/writer-h": (0.95, 0.006),
    "train/writer-a": (0.995, 0.005),
    "train/writer-c": (0.995, 0.005),
    "train/writer-d": (0.995, 0.005),
    "train/writer-f": (0.93, 0.008),
    "train/writer-g": (0.98, 0.006),
    "train/writer-own": (0.955, 0.015),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", _HELD_TO)
def test_secrets_of_a_writer_are_found_and_look_alikes_left_alone(name: str) -> None:
    least, most = _HELD_TO[name]
    split, writer = name.split("/")
    samples = list(corpus.secrets(split, writer))[::_STEP]
    missed = [(one.text, one.value) for one in samples if corpus.leaks(one, redact(one.text))]
    assert len(missed) <= (1 - least) * len(samples) + 2, missed
    texts = list(corpus.clean(split, writer))[::_STEP]
    changed = [(text, redact(text)) for text in texts if redact(text) != text]
    assert len(changed) <= most * len(texts) + 2, changed


def test_no_writer_is_in_both_splits() -> None:
    train, held_out = set(corpus.writers("train")), set(corpus.writers("held_out"))
    assert train
    assert held_out
    assert not train & held_out
    assert {name.split("/")[1] for name in _HELD_TO} == train | held_out


@pytest.mark.slow
def test_no_text_is_in_the_corpus_twice_also_not_by_two_writers() -> None:
    folders = [(split, writer) for split in ("train", "held_out") for writer in corpus.writers(split)]
    clean = [text for split, writer in folders for text in corpus.clean(split, writer)]
    assert len(clean) == len(set(clean))
    secrets = [(one.text, one.value) for split, writer in folders for one in corpus.secrets(split, writer)]
    assert len(secrets) == len(set(secrets))


def test_no_file_of_the_corpus_is_larger_than_a_megabyte() -> None:
    files = [path for path in Path(corpus.__file__).parent.rglob("*") if path.is_file()]
    assert max(path.stat().st_size for path in files) < 1_000_000
