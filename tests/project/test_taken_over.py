"""The page about gaia-coder names existing tests and all behaviours."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/explanation/gaia-coder.md").read_text(encoding="utf-8")


def test_every_test_that_the_page_names_is_there() -> None:
    tests = set(re.findall(r"`(test_\w+)` in `(tests/[\w/]+\.py)`", PAGE))
    assert len(tests) > 60
    texts = {path: (ROOT / path).read_text(encoding="utf-8") for _, path in tests}
    assert {name for name, path in tests if f"def {name}(" not in texts[path]} == set()
    spoken_of = set(re.findall(r"`(test_\w+)`", PAGE))
    assert {name for name in spoken_of if not any(f"def {name}(" in text for text in texts.values())} == set()


def test_every_behaviour_has_a_row_with_its_tests() -> None:
    rows = re.findall(r"^\| (\d+) \| (.+) \| (.+) \|$", PAGE, re.MULTILINE)
    assert [int(number) for number, _, _ in rows] == list(range(1, 128))
    missing = [number for number, _, shown in rows if shown == "not there yet"]
    assert all("`test_" in shown for number, _, shown in rows if number not in missing)
    sentence = "1 row of the loop is" if len(missing) == 1 else f"{len(missing)} rows of the loop are"
    assert not missing or f"{sentence} not there yet." in PAGE
