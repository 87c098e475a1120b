import pytest

from tests.cli.conftest import Program
from tests.provenance.text_repositories import TextFolder


def test_why_shows_prompt_words_call_tests_cost_and_earlier_line(folder: TextFolder, decklog: Program) -> None:
    shown = decklog("why", "a:2").out
    assert shown.splitlines()[0] == "a:2  zwei"
    for text in (
        "agent claude:s1",
        "Count in German",
        "I begin with the second line.",
        "Edit a",
        "ok: pytest -q",
        "$0.42",
        "two",
    ):
        assert text in shown
    assert len(shown.splitlines()) <= 24


def test_why_has_the_same_as_data(folder: TextFolder, decklog: Program) -> None:
    data = decklog("why", "a:2", "HEAD", "--json").data
    (edit,) = data["edits"]
    assert (data["origin"]["kind"], edit["prompt"]["text"], edit["cost_microdollars"]) == ("agent", "Count in German", 420_000)


def test_why_does_not_guess_about_a_line_without_evidence(folder: TextFolder, decklog: Program) -> None:
    shown = decklog("why", "a:1").out
    assert "unknown" in shown
    assert "claude" not in shown


def test_why_names_a_known_person(folder: TextFolder, decklog: Program) -> None:
    assert "person Bo <bo@example.org>" in decklog("why", "a:3").out


@pytest.mark.slow
def test_why_refuses_what_is_no_line(folder: TextFolder, decklog: Program) -> None:
    assert decklog("why", "a").code == 2
    missing = decklog("why", "a:99")
    assert (missing.code, "there is no line 99 of a: file a has only" in missing.err) == (3, True)
    assert "decklog why --help" in missing.err
    assert decklog("why", "../x:1").code == 3


def test_why_takes_a_path_seen_from_a_subfolder(folder: TextFolder, decklog: Program) -> None:
    (folder.folder / "sub").mkdir()
    assert decklog("why", "../a:2", cwd=folder.folder / "sub").out.startswith("a:2  zwei")


@pytest.mark.slow
def test_commit_show_has_files_shares_sessions_and_cost(folder: TextFolder, decklog: Program) -> None:
    shown = decklog("commit", "show", "HEAD~2").out
    assert "1 added line: agent 1 (100 %)" in shown
    assert "claude:s1, 1 line, opus, $0.42" in shown
    assert "not reviewed" in shown.splitlines()
    data = decklog("commit", "show", "HEAD~1", "--json").data
    assert data["lines"] == {"agent": 0, "person": 1, "mixed": 0, "unknown": 0}
    assert decklog("commit", "show", "nowhere").code == 3


@pytest.mark.slow
def test_stats_are_a_table_json_and_markdown(folder: TextFolder, decklog: Program) -> None:
    shown = decklog("stats", "HEAD~3..HEAD").out.splitlines()
    assert shown[0].endswith("3 commits")
    assert [line.split()[0] for line in shown[1:-1]] == ["agent", "(person)", "(unknown)", "claude", "total"]
    assert shown[-1] == "Not reviewed: 1 of 1 line by agents"
    data = decklog("stats", "HEAD~3..HEAD", "--by", "path", "--json").data
    assert [(row["key"], row["written"], row["kept"]) for row in data["rows"]] == [("a", 3, 3)]
    assert decklog("stats", "--by", "model", "--markdown").out.startswith("| model | written | kept |")


@pytest.mark.slow
def test_commands_outside_of_a_repository_say_so(log_folder: object, decklog: Program) -> None:
    for words in (["why", "a:1"], ["commit", "show"], ["stats"]):
        answer = decklog(*words)
        assert (answer.code, "not in a git repository" in answer.err) == (3, True), answer
