"""A file of JSON is read piece by piece, and gives what it gives when it is read as a whole."""

import json
import random
import tracemalloc
from pathlib import Path

import pytest

from decklog.core.errors import Invalid, NotFound
from decklog.importing import json_pieces
from decklog.importing.json_pieces import JsonFile
from decklog.importing.text_files import values_in

OBJECT = {"title": "Ünï", "list": [1, [2.5, None]], "text": 'a "b" \\ ]},[{'}
WHOLE = [
    "",
    " \n ",
    "[]",
    "[ ]{}[]",
    json.dumps([OBJECT] * 5),
    json.dumps([OBJECT] * 5, indent=2, ensure_ascii=False),
    "\ufeff" + json.dumps(OBJECT) + "\n" + json.dumps([OBJECT, OBJECT]) + ",\n[]",
    json.dumps({"items": [OBJECT] * 3}),
    '12.5e+3 -7, true null "x" [1, 2.25, -3e-2, [4], "y", false]',
    '[{"half": "\\ud800 and \\uDFFF", "both": "\\ud83d\\ude00"}]',
    '<<<<<<< ours\n[{"a": 1}]\n=======\n[{"a": 2}]\n>>>>>>> theirs\n',
    '{"text": "<<<<<<< is a mark of git"}',
]
FLAWED = [
    '[{"a": 1}, {"b": 2}',
    '[{"a": 1}, {"b": 2},',
    '[{"a": 1}, {"b": 2},]',
    '[{"a": 1},, {"b": 2}]',
    '[{"a": 1} {"b": 2}] {"c": 3}',
    '[{"a": 1}, {"b": tru}, {"c": 3}]',
    '{"a": 1}\n{"b": 2}\n{"c": ',
    '{"a": 1} nonsense',
    '[{"a": 1}, ' + "[" * 5000,
    "[",
]


def _flat(values: list[object]) -> list[object]:
    return [one for found in values for one in (_flat(found) if isinstance(found, list) else [found])]


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 1024])
@pytest.mark.parametrize("text", [*WHOLE, *FLAWED])
def test_pieces_give_what_the_whole_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, piece: int) -> None:
    monkeypatch.setattr(json_pieces, "_PIECE", piece)
    path = tmp_path / "in.json"
    path.write_text(text, encoding="utf-8")
    values, rest = values_in(text.lstrip("\ufeff"))

    found = JsonFile(str(path))

    assert _flat([*found]) == _flat(values)
    assert found.rest == rest
    assert bool(rest) is (text in FLAWED)


def test_any_text_that_is_cut_off_anywhere_gives_what_the_whole_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance, path = random.Random(5), tmp_path / "in.json"
    text = "\n".join(json.dumps([{"number": number, **OBJECT} for number in range(3)]) for _ in range(2))
    for _ in range(150):
        cut = text[: chance.randrange(len(text))]
        monkeypatch.setattr(json_pieces, "_PIECE", chance.randrange(1, 200))
        path.write_text(cut, encoding="utf-8")
        values, rest = values_in(cut)

        found = JsonFile(str(path))

        assert (_flat([*found]), found.rest) == (_flat(values), rest)


def test_what_is_no_text_is_read_with_a_sign_in_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_pieces, "_PIECE", 1)
    path = tmp_path / "in.json"
    path.write_bytes(b'["a\xff\xc3"]\xe2\x82')

    found = JsonFile(str(path))

    assert [*found] == ["a\ufffd\ufffd"]
    assert found.rest == "\ufffd"


def _peak(path: Path, count: int) -> int:
    with path.open("w") as file:
        file.write("[" + ",\n".join(json.dumps({"number": number, "body": "word " * 100}) for number in range(count)) + "]")
    tracemalloc.start()
    try:
        assert sum(1 for _ in JsonFile(str(path))) == count
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_a_list_of_many_takes_no_more_memory_than_one_of_few(tmp_path: Path) -> None:
    few, many = _peak(tmp_path / "few.json", 3_000), _peak(tmp_path / "many.json", 12_000)

    assert many < 1.1 * few
    assert many < 2 * 1024**2 < (tmp_path / "many.json").stat().st_size


def test_what_is_not_there_or_no_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        [*JsonFile(str(tmp_path / "gone.json"))]
    with pytest.raises(Invalid):
        [*JsonFile(str(tmp_path))]
