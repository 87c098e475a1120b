"""Search over everything: each thing once, by its newest entry, with the words around what was looked for."""

import pytest

from decklog import Decklog, Invalid, NotFound
from decklog.stores.overview import search
from tests.stores.claiming import claimed


@pytest.fixture
def filled(log: Decklog) -> Decklog:
    log.runs.start("Teach the parser trailing commas", run_id="commas")
    log.runs.start("Upgrade the commas library", run_id="other")
    log.tasks.add("commas", "Lex commas", task_id="lex")
    claim = claimed(log, "commas", worker="dev-1")
    claim.finish("commas are tokens now")
    log.approvals.ask("commas", "Push feature/commas?", by="dev-1", about="git push")
    with log.acting("dev-2"):
        log.journal.append("commas", "The grammar of commas is in one place", kind="reasoning", task_id="lex")  # type: ignore[arg-type]
    return log


def test_each_thing_is_found_once_by_what_a_person_calls_it(filled: Decklog) -> None:
    found = filled.overview.search("commas")
    shown = {(hit.kind, hit.stream): hit.snippet for hit in found.hits}
    assert len(found.hits) == len(shown) == 5
    assert shown["run", "other"] == "Upgrade the commas library"
    assert shown["question", "commas"] == "Push feature/commas?"
    assert shown["reasoning", "commas"] == "The grammar of commas is in one place"
    assert "commas" in shown["task", "commas"]
    assert found.facets["stream"] == {"commas": 4, "other": 1}
    assert found.facets["agent"]["dev-2"] == 1
    assert (found.looked_at, found.is_capped, found.next) == (7, False, None)


def test_what_is_found_by_something_else_is_still_called_by_its_name(filled: Decklog) -> None:
    filled.tasks.add("other", "Write it down", task_id="doc")
    (hit,) = filled.overview.search("other", kind="task").hits
    assert hit.snippet == "Write it down · run id: other"
    assert [hit.snippet[start:end] for start, end in hit.highlights] == ["other"]


def test_marks_are_the_places_of_the_words(filled: Decklog) -> None:
    (hit,) = filled.overview.search("gram* place").hits
    assert [hit.snippet[start:end] for start, end in hit.highlights] == ["gram", "place"]
    assert hit.id == f"commas:{hit.seq}"


def test_hits_are_narrowed_by_kind_run_and_agent(filled: Decklog) -> None:
    assert [hit.record_id for hit in filled.overview.search("commas", kind="task").hits] == ["lex"]
    assert [hit.stream for hit in filled.overview.search("commas", run_id="other").hits] == ["other"]
    assert [hit.kind for hit in filled.overview.search("commas", agent="dev-2").hits] == ["reasoning"]


def test_hits_come_page_by_page_newest_first(filled: Decklog) -> None:
    whole = [hit.id for hit in filled.overview.search("commas").hits]
    first = filled.overview.search("commas", limit=3)
    assert first.next is not None
    assert [
        *(hit.id for hit in first.hits),
        *(hit.id for hit in filled.overview.search("commas", after=first.next).hits),
    ] == whole


def test_no_more_than_the_newest_hits_are_looked_at_for_a_page(filled: Decklog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MOST_HITS", 2)
    found = filled.overview.search("commas", kind="task")
    assert (found.looked_at, found.is_capped) == (2, True)
    seen = []
    for _ in range(9):
        seen += [hit.record_id for hit in found.hits]
        if found.next is None:
            break
        found = filled.overview.search("commas", kind="task", after=found.next)
    assert "lex" in seen
    assert found.next is None


def test_a_search_of_what_goes_on_looks_for_nothing_new_in_runs_that_are_over(filled: Decklog) -> None:
    filled.runs.finish("other")
    filled.journal.index()
    filled.journal.append("other", "an afterthought on commas")
    filled.journal.append("commas", "and another on commas")
    filled.runs.start("Commas in lists", run_id="lists")

    def found(**how: bool) -> list[str]:
        return [hit.stream for hit in filled.overview.search("commas", **how).hits]  # type: ignore[arg-type]

    before = found(going_on=True)
    assert (before.count("lists"), before.count("other")) == (1, 1)
    assert "another" in filled.overview.search("another", going_on=True).hits[0].snippet
    assert found().count("other") == 2
    filled.journal.index()
    assert found(going_on=True).count("other") == 2


def test_a_long_text_is_cut_around_the_word(filled: Decklog) -> None:
    filled.journal.append("commas", "x " * 500 + "needle" + " y" * 500)
    (hit,) = filled.overview.search("needle").hits
    assert hit.snippet.startswith("…x")
    assert hit.snippet.endswith("y…")
    assert len(hit.snippet) < 210


def test_no_word_and_no_such_run_are_refused(log: Decklog) -> None:
    with pytest.raises(Invalid, match="at least one word"):
        log.overview.search(" ")
    with pytest.raises(NotFound, match="no run 'nope'"):
        log.overview.search("word", run_id="nope")
