"""Claims about keeping output: never more than the cap, never out of order, never a byte miscounted."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from decklog.guard.shell.spool import STREAMS, OutputSpool, read_output

PIECES = st.lists(st.tuples(st.sampled_from(STREAMS), st.binary(min_size=1, max_size=60)), max_size=40)


def kept(folder: str, pieces: list[tuple[str, bytes]], cap: int) -> None:
    spool = OutputSpool(folder, cap)
    for stream, data in pieces:
        spool.take(stream, data)
    spool.close()


@settings(deadline=None)
@given(pieces=PIECES)
def test_what_fits_is_kept_whole_and_in_order(pieces: list[tuple[str, bytes]]) -> None:
    with TemporaryDirectory() as folder:
        kept(folder, pieces, 1_000_000)
        output = read_output(folder)
    assert output.cut_bytes == 0
    for stream in STREAMS:
        text = "".join(chunk.text for chunk in output.chunks if chunk.stream == stream)
        data = b"".join(data for name, data in pieces if name == stream)
        assert text == data.decode("utf-8", "replace").replace("\0", "\ufffd")


@settings(deadline=None)
@given(sizes=st.lists(st.integers(1, 70), max_size=60), cap=st.integers(4, 200))
def test_what_does_not_fit_keeps_both_ends_and_counts_the_rest(sizes: list[int], cap: int) -> None:
    pieces = [("stdout", bytes([97 + number % 26]) * size) for number, size in enumerate(sizes)]
    whole = b"".join(data for _, data in pieces).decode()
    with TemporaryDirectory() as folder:
        kept(folder, pieces, cap)
        output = read_output(folder)
        on_disk = sum(path.stat().st_size for path in Path(folder).iterdir())
    head, _, tail = output.text.partition(f"\n[… {output.cut_bytes} bytes left out …]\n")
    if output.cut_bytes == 0:
        assert output.text == whole
    else:
        assert whole.startswith(head)
        assert whole.endswith(tail)
        assert len(head) + len(tail) + output.cut_bytes == len(whole)
        assert len(head) + len(tail) <= cap
        assert tail
    assert on_disk < 2 * cap + 20 * (cap + 10)


def test_half_a_piece_at_the_end_of_a_file_is_left_for_later(tmp_path: Path) -> None:
    kept(str(tmp_path), [("stdout", b"whole\n"), ("stdout", b"cut off")], 1000)
    file = tmp_path / "stdout.head"
    file.write_bytes(file.read_bytes()[:-3])
    assert read_output(tmp_path).text == "whole\n"
