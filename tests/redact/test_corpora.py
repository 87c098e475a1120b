"""The corpora, scored as a whole and through every obstacle."""

from random import Random

import pytest

from decklog.redact import redact, scan_by_rules
from decklog.redact.batch import clean_among
from tests.every import every
from tests.redact import scoring
from tests.redact.obstacles import OBSTACLES
from tests.redact.secrets import Secret, blocks, placed, tokens
from tests.searches import FULL

SEEDS = (0, 1, 2) if FULL else (0,)


def test_the_corpora_are_large_enough_to_mean_something() -> None:
    assert len({sample.kind for sample in scoring.secrets(0)}) >= 150
    assert len(set(scoring.benign())) >= 250


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_secrets_are_redacted_through_every_obstacle(obstacle: str) -> None:
    # Each obstacle has half of them before it, and each of them half of the obstacles; in the open all are looked for below.
    part = slice(None) if FULL else slice([*OBSTACLES].index(obstacle) % 2, None, 2)
    total = len(SEEDS) * len(scoring.secrets(0)[part])
    missed = [(sample.kind, shown) for seed in SEEDS for sample, shown in scoring.missed(obstacle, seed, part)]
    assert len(missed) <= total * 0.02, missed


@pytest.mark.parametrize("seed", SEEDS)
def test_no_secret_in_the_open_is_missed(seed: int) -> None:
    assert scoring.missed("plain", seed) == []


@pytest.mark.parametrize("form", scoring.FORMS)
def test_look_alikes_stay_as_they_are(form: str) -> None:
    assert scoring.disturbed(form) == []


@every("sample", [*tokens(7), *placed(7), *blocks(7)], ids=lambda sample: sample.kind)
def test_redaction_is_idempotent_and_keeps_what_surrounds_the_secret(sample: Secret) -> None:
    once = redact(f"before {sample.text}\nafter it all")
    assert redact(once) == once
    assert once.startswith("before ")
    assert once.endswith("\nafter it all")


def test_of_many_texts_those_are_clean_that_one_after_the_other_are() -> None:
    samples = [*tokens(7), *placed(7), *blocks(7)]
    shown = [OBSTACLES[name](sample, Random(3)) for name in ("plain", "line break", "base64") for sample in samples]
    texts = [*shown, *scoring.benign()]
    clean = [text for text in texts if not scan_by_rules(text)[1]]
    assert clean_among(texts) == set(clean)
    # Long ones, too, in the midst of what surrounds them in a tool's output.
    around = "\n".join(f"line {number} of what a tool printed" for number in range(200))
    longer = [f"{around}\n{text}\n{around}" for text in texts[:: 1 if FULL else 12]]
    assert clean_among(longer) == {text for text in longer if not scan_by_rules(text)[1]}
