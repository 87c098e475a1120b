"""What a call prints, where, and with which exit code."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.cli.call import WrongUsage
from decklog.cli.exits import exit_code
from decklog.core import errors
from tests.cli.conftest import Program
from tests.db.processes import environment, read_line, start

ENVELOPE = ["ok", "data", "next", "warnings"]
ERROR = ["code", "message", "hint", "retryable", "details"]


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (errors.Invalid, 1),
        (errors.Damaged, 1),
        (errors.SchemaTooNew, 1),
        (WrongUsage, 2),
        (errors.NotFound, 3),
        (errors.Denied, 4),
        (errors.ReadOnly, 4),
        (errors.Conflict, 5),
        (errors.LeaseLost, 5),
        (errors.DiskFull, 5),
        (errors.Refused, 6),
        (errors.BudgetExceeded, 6),
        (errors.StillPending, 7),
        (errors.Busy, 75),
        (errors.TimedOut, 124),
        (KeyboardInterrupt, 130),
    ],
)
def test_each_kind_of_error_has_its_exit_code(kind: type[BaseException], code: int) -> None:
    assert exit_code(kind("x")) == code


@pytest.mark.slow
def test_success_is_one_envelope_on_stdout_and_nothing_on_stderr(decklog: Program, log_folder: Path) -> None:
    for words in (["runs", "show", "run_1"], ["runs", "find"], ["journal", "heads"], ["where"], ["doctor"], ["verify"], ["init"]):
        said = decklog(*words, "--json")
        assert (said.code, said.err) == (0, ""), words
        assert list(said.envelope) == ENVELOPE
        assert said.envelope["ok"] is True


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "code", "name"),
    [
        (["runs", "show", "nobody"], 3, "not_found"),
        (["runs", "start", " "], 1, "invalid"),
        (["runs", "show"], 2, "usage"),
        (["runs", "show", "run_1", "run_2"], 2, "usage"),
        (["runs", "fly"], 2, "usage"),
        (["runs", "find", "--colour", "red"], 2, "usage"),
        (["runs", "find", "--limit", "many"], 2, "usage"),
        (["runs", "find", "--limit"], 2, "usage"),
        (["runs", "find", "--limit", "0"], 1, "invalid"),
        (["runs", "find", "--oldest-first=perhaps"], 2, "usage"),
        (["runs", "find", "--since", "soon"], 2, "usage"),
        (["runs", "start", "x", "--metadata", "{"], 2, "usage"),
        (["runs", "start", "x", "--metadata", "@nowhere.json"], 2, "usage"),
        (["runs", "find", "--db"], 2, "usage"),
        (["tasks", "resume", "nobody"], 3, "not_found"),
        (["tasks", "claim", "run_1", "--worker", "w", "--lease-seconds", "nan"], 2, "usage"),
        (["tasks", "claim", "run_1", "--worker", "w", "--lease-seconds", "inf"], 2, "usage"),
        (["tasks", "claim", "run_1", "--worker", "w", "--lease-seconds", "1e300"], 1, "invalid"),
        (["tasks", "extend", "x", "--fence", "9" * 30], 1, "invalid"),
        (["journal", "show", "run_1", "99"], 3, "not_found"),
        (["journal", "show", "run_1", "9" * 30], 3, "not_found"),
        (["journal", "append", "run_1", "x", "--kind", "gossip"], 2, "usage"),
        (["journal", "at", "runs", "run_1", "soon"], 1, "invalid"),
        (["journal", "find", "--after", "x"], 1, "invalid"),
        (["verify", "nobody"], 3, "not_found"),
        (["verify", "--anchor", "/nowhere/at/all"], 1, "invalid"),
        (["watch", "nobody", "--no-follow"], 3, "not_found"),
        (["dance"], 2, "usage"),
        (["where", "--colour"], 2, "usage"),
        (["redact", "no-such-file"], 2, "usage"),
        (["runs", "show", "run_1", "--db", "none.db"], 3, "not_found"),
        (["runs", "show", "run_1", "--db", "mysql://x/y"], 1, "invalid"),
        (["runs", "show", "run_1", "--db", "postgresql://nobody@127.0.0.1:1/x"], 1, "unreachable"),
        (["runs", "show", "run_1", "--db", "."], 1, "invalid"),
        (["runs", "show", "run_1", "--db", "text.txt"], 1, "not_a_database"),
    ],
)
def test_an_error_has_the_same_shape_in_the_same_place(
    decklog: Program, log_folder: Path, words: list[str], code: int, name: str
) -> None:
    (log_folder / "text.txt").write_text("not a database " * 100)
    said = decklog(*words, "--json") if words[-1] != "--db" else decklog("--json", *words)
    assert said.code == code, said
    assert said.envelope["ok"] is False
    error = said.envelope["error"]
    assert list(error) == ERROR
    assert error["code"] == name
    assert error["message"]
    plain = decklog(*words)
    assert (plain.code, plain.out) == (code, "")
    assert plain.err.startswith("decklog: ")


@pytest.mark.slow
def test_a_conflict_and_a_lost_lease_end_with_5(decklog: Program, log_folder: Path) -> None:
    decklog("tasks", "add", "run_1", "work", "--task", "t1")
    fence = decklog("tasks", "claim", "run_1", "--worker", "w", "--json").data["fence"]
    assert decklog("tasks", "finish", "t1", "--fence", str(fence)).code == 0
    assert decklog("tasks", "resume", "t1").code == 5
    late = decklog("tasks", "fail", "t1", f"--fence={fence}", "--json")
    assert (late.code, late.envelope["error"]["code"]) == (5, "lease_lost")


def test_repeated_starts_say_that_it_was_there_already(decklog: Program, log_folder: Path) -> None:
    again = decklog("runs", "start", "another goal", "--run", "run_1", "--json")
    assert again.data["already"] is True
    assert again.data["goal"] == "a goal"


@pytest.mark.slow
def test_a_page_says_where_the_next_one_starts(decklog: Program, log_folder: Path) -> None:
    for number in range(3):
        decklog("journal", "append", "run_1", str(number))
    first = decklog("journal", "find", "run_1", "--limit", "2", "--json").envelope
    second = decklog("journal", "find", "run_1", "--limit", "2", "--after", first["next"], "--json").envelope
    assert [entry["seq"] for entry in first["data"] + second["data"]] == [4, 3, 2, 1]
    assert second["next"] is None
    plain = decklog("journal", "find", "run_1", "--limit", "2")
    assert "--after" in plain.err
    assert len(plain.out.splitlines()) == 2


# Words


def test_a_body_comes_from_stdin(decklog: Program, log_folder: Path) -> None:
    said = decklog("journal", "append", "run_1", "-", "--json", stdin="two\nlines — ünï\n")
    assert said.data["body"] == "two\nlines — ünï\n"


@pytest.mark.slow
def test_json_comes_from_a_word_a_file_or_stdin(decklog: Program, log_folder: Path) -> None:
    (log_folder / "payload.json").write_text('{"from": "file"}')
    for word, expected in (('{"from": "word"}', "word"), ("@payload.json", "file"), ("-", "stdin")):
        said = decklog("journal", "append", "run_1", "--payload", word, "--json", stdin='{"from": "stdin"}')
        assert said.data["payload"] == {"from": expected}


@pytest.mark.slow
def test_options_are_spelled_with_dashes_underscores_or_equals(decklog: Program, log_folder: Path) -> None:
    for words in (["--task", "t"], ["--task=t"]):
        assert decklog("journal", "append", "run_1", "x", *words, "--json").data["task_id"] == "t"
    assert decklog("runs", "count_cycle", "run_1").code == decklog("runs", "count-cycle", "run_1").code == 0
    assert decklog("runs", "find", "--oldest-first", "--json").code == 0
    assert decklog("runs", "find", "--no-oldest-first", "--json").code == 0
    assert decklog("runs", "find", "--oldest-first=false", "--json").code == 0


def test_words_behind_two_dashes_are_never_options(decklog: Program, log_folder: Path) -> None:
    said = decklog("journal", "append", "--json", "run_1", "--", "--db")
    assert said.data["body"] == "--db"


def test_a_list_is_words_with_commas_or_json(decklog: Program, log_folder: Path) -> None:
    for word in ("a, b", '["a", "b"]'):
        assert decklog("tasks", "add", "run_1", "x", "--tags", word, "--json").data["tags"] == ["a", "b"]


@pytest.mark.slow
def test_the_acting_agent_is_named_once(decklog: Program, log_folder: Path) -> None:
    decklog("runs", "count-cycle", "run_1", "--agent", "qa", "--agent-id", "q1")
    entry = decklog("journal", "show", "run_1", "2", "--json").data
    assert (entry["agent"], entry["agent_id"]) == ("qa", "q1")
    decklog("runs", "count-cycle", "run_1", DECKLOG_AGENT="developer", DECKLOG_TASK_ID="t9")
    entry = decklog("journal", "show", "run_1", "3", "--json").data
    assert (entry["agent"], entry["task_id"]) == ("developer", "t9")


@pytest.mark.slow
def test_text_that_is_not_utf8_is_refused_not_mangled(decklog: Program, log_folder: Path) -> None:
    for words in (["journal", "append", "run_1", "\udcff"], ["journal", "show", "\udcff", "1"], ["runs", "show", "\udcff"]):
        said = decklog(*words, "--json")
        assert said.code in (1, 3), said
        assert said.envelope["ok"] is False
    assert decklog("journal", "append", "run_1", "-", stdin=b"\xff\xfe").code == 1


def test_nothing_is_ever_asked(decklog: Program, log_folder: Path) -> None:
    """Every call of these tests has an empty stdin; one that asked would fail or hang."""
    assert decklog("init").code == decklog("migrate").code == 0


# Pipes and streams


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error(decklog: Program, log_folder: Path) -> None:
    with Decklog.open(log_folder / ".decklog" / "decklog.db") as log:
        log.journal.append_many([{"stream": "run_1", "body": f"line {number} " + "x" * 100} for number in range(3000)])
    program = f"'{sys.executable}' -m decklog"
    for command in (
        "watch run_1 --no-follow",
        "journal find run_1 --limit 1000",
        "watch run_1 --no-follow --json",
        "where",
    ):
        for reader in ("head -1", "true"):
            done = subprocess.run(
                ["bash", "-c", f"set -o pipefail; {program} {command} | {reader}"],
                capture_output=True,
                text=True,
                cwd=log_folder,
                env=environment(HOME=str(log_folder / "home")),
                check=False,
            )
            assert (done.returncode, done.stderr.partition("More: ")[0]) == (0, ""), (command, reader)


@pytest.mark.slow
def test_watch_shows_what_is_there_and_ends_when_told(decklog: Program, log_folder: Path) -> None:
    decklog("journal", "append", "run_1", "hello there")
    said = decklog("watch", "run_1", "--no-follow")
    assert "hello there" in said.out
    assert len(said.out.splitlines()) == 2
    lines = decklog("watch", "--no-follow", "--json").out.splitlines()
    assert [json.loads(line)["seq"] for line in lines] == [1, 2]
    assert len(decklog("watch", "run_1", "--after", "1", "--no-follow").out.splitlines()) == 1
    assert decklog("watch", "run_1", "--timeout", "0.1").code == 0


def test_search_finds_words(decklog: Program, log_folder: Path) -> None:
    decklog("journal", "append", "run_1", "the lexer drops a token")
    assert [entry["seq"] for entry in decklog("search", "lexer", "tok*", "--json").data] == [2]
    assert decklog("search", "nothing", "--run", "run_1", "--json").data == []
    assert decklog("search").code == 2


def test_verify_ends_with_1_and_names_what_was_tampered_with(decklog: Program, log_folder: Path) -> None:
    assert decklog("verify").out.startswith("OK: 1 entry in 1 stream verified, 1 record")
    tampering(log_folder, "update runs set goal = 'another'")
    said = decklog("verify")
    assert said.code == 1
    assert "run_1" in said.out
    assert "goal" in said.out
    envelope = decklog("verify", "--json").envelope
    assert envelope["ok"] is False
    assert list(envelope["error"]) == ERROR
    assert envelope["data"]["problems"][0]["record_id"] == "run_1"


def tampering(folder: Path, statement: str) -> None:
    import apsw

    connection = apsw.Connection(str(folder / ".decklog" / "decklog.db"))
    connection.execute(statement)
    connection.close()


def test_a_log_of_another_schema_is_refused_by_name(decklog: Program, log_folder: Path) -> None:
    tampering(log_folder, "update schema_steps set checksum = 'other'")
    error = decklog("doctor", "--json").envelope["error"]
    assert error["code"] == "schema_differs"
    assert "0001_first" in error["message"]


@pytest.mark.slow
def test_doctor_notices_an_open_file(decklog: Program, log_folder: Path) -> None:
    assert decklog("doctor").out.endswith("No problems found.\n")
    (log_folder / ".decklog" / "decklog.db").chmod(0o644)
    said = decklog("doctor")
    assert said.code == 1
    assert "chmod 600" in said.out
    envelope = decklog("doctor", "--json").envelope
    assert envelope["ok"] is False
    assert list(envelope["error"]) == ERROR
    assert len(envelope["data"]["findings"]) >= 1


# Redacting


def secret() -> str:
    return "ghp_" + "a1B2c3D4e5F6" * 3


@pytest.mark.slow
def test_redact_takes_secrets_out_of_text(decklog: Program, tmp_path: Path) -> None:
    said = decklog("redact", stdin=f"token {secret()} here\n")
    assert said.code == 0
    assert secret() not in said.out
    assert "[redacted:" in said.out
    (tmp_path / "output.txt").write_text(f"{secret()}\n")
    assert secret() not in decklog("redact", "output.txt").out
    assert decklog("redact", stdin=b"bytes \xff stay\n").out == "bytes \udcff stay\n"


@pytest.mark.slow
def test_redact_reads_and_writes_json_strings(decklog: Program) -> None:
    lines = [f"a {secret()}\nb", "plain", "\ud800 half", ""]
    said = decklog("redact", "--jsonl", stdin="".join(json.dumps(line) + "\n" for line in lines))
    assert said.code == 0
    clean = [json.loads(line) for line in said.out.splitlines()]
    assert secret() not in said.out
    assert clean[1:] == ["plain", "\ud800 half", ""]
    assert decklog("redact", "--jsonl", stdin="{}\n").code == 2
    assert decklog("redact", "--jsonl", stdin="nonsense\n").code == 2


# Being interrupted


@pytest.mark.slow
def test_a_call_that_waits_for_a_frozen_writer_can_be_interrupted(log_folder: Path) -> None:
    target = str(log_folder / ".decklog" / "decklog.db")
    holder = start("hold_lock", target)
    read_line(holder)
    try:
        call = subprocess.Popen(
            [sys.executable, "-m", "decklog", "runs", "count-cycle", "run_1", "--db", target],
            env=environment(),
            stderr=subprocess.PIPE,
            # A shell that runs the tests in the background has them ignore it, and all that they start.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        with pytest.raises(subprocess.TimeoutExpired):
            call.wait(1.5)
        os.kill(call.pid, signal.SIGINT)
        assert call.wait(20) == 130
        assert call.stderr is not None
        with call.stderr:
            assert b"Traceback" not in call.stderr.read()
    finally:
        holder.communicate("go on\n", timeout=20)
    with Decklog.open(target) as log:
        assert log.runs.count_cycle("run_1").cycles == 1


@pytest.mark.slow
def test_the_same_blocker_twice_in_a_row_is_a_warning(decklog: Program, log_folder: Path) -> None:
    decklog("tasks", "add", "run_1", "work", "--task", "t1")
    heard = []
    for _ in range(3):
        fence = decklog("tasks", "claim", "run_1", "--worker", "w", "--json").data["fence"]
        said = decklog("tasks", "fail", "t1", "--fence", str(fence), "--blocker", "no network", "--json")
        heard.append(said.envelope["warnings"])
    assert heard[0] == []
    assert "same blocker 2 times in a row: no network" in heard[1][0]
    assert "warning: task t1 met the same blocker 3 times" in decklog("tasks", "show", "t1").err


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (["tasks", "add-many", "run_1", '{"title": "x"}'], "a list of objects"),
        (["tasks", "add-many", "run_1", '["x"]'], "a list of objects"),
        (["tasks", "add-many", "run_1", "null"], "a list of objects"),
        (["tasks", "add", "run_1", "x", "--tags", "[1]"], "a list of texts"),
        (["tasks", "add", "run_1", "x", "--inputs", "[1]"], "a JSON object"),
        (["runs", "start", "x", "--metadata", "5"], "a JSON object"),
        (["journal", "append-many", "5"], "a list of objects"),
        (["outputs", "check-evidence", "run_1", "[1]"], "a list of texts"),
        (["workflow", "load", "--document", "5"], "a JSON object"),
    ],
)
def test_json_of_another_shape_is_wrong_usage(decklog: Program, log_folder: Path, words: list[str], kind: str) -> None:
    said = decklog(*words)
    assert said.code == 2
    assert f"must be {kind}" in said.err


@pytest.mark.parametrize(
    "words",
    [
        ["journal", "append", "run_1", "x", "--payload"],
        ["tasks", "find", "run_1", "--after"],
        ["states", "save", "run_1", "pm"],
        ["tasks", "add-many", "run_1"],
    ],
)
def test_json_that_is_very_deep_is_refused_in_our_words(decklog: Program, log_folder: Path, words: list[str]) -> None:
    said = decklog(*words, "[" * 30_000 + "]" * 30_000)
    assert said.code in (1, 2)
    assert said.err
    assert "Traceback" not in said.err


@pytest.mark.slow
def test_many_tasks_come_from_a_file(decklog: Program, log_folder: Path) -> None:
    tasks = [{"title": "one", "task_id": "a", "depends_on": ["b"]}, {"title": "two", "task_id": "b", "tags": ["x"]}]
    (log_folder / "tasks.json").write_text(json.dumps(tasks))
    assert [task["id"] for task in decklog("tasks", "add-many", "run_1", "@tasks.json", "--json").data] == ["b", "a"]
    said = decklog("tasks", "add-many", "run_1", "-", stdin=json.dumps(tasks))
    assert said.code == 0
    assert len(decklog("tasks", "find", "run_1", "--json").data) == 2


def test_a_claim_that_gets_nothing_says_why_and_what_would_help(log_folder: Path, decklog: Program) -> None:
    said = decklog("tasks", "claim", "run_1", "--worker", "w", "--json")
    assert (said.code, said.data) == (0, None)
    assert said.envelope["reason"]["code"] == "no_tasks"
    spoken = decklog("tasks", "claim", "run_1", "--worker", "w")
    assert (spoken.code, spoken.out) == (0, "")
    assert spoken.err == 'Nothing: run run_1 has no tasks\n  Add one: decklog tasks add run_1 "TITLE"\n'


@pytest.mark.slow
def test_list_works_as_find_and_show_as_the_one_word_for_a_record(decklog: Program, log_folder: Path) -> None:
    assert decklog("runs", "list", "--json").data == decklog("runs", "find", "--json").data
    assert decklog("runs", "list", "--help").out == decklog("runs", "find", "--help").out
    decklog("tasks", "add", "run_1", "work", "--task", "t1")
    assert decklog("tasks", "show", "t1", "--json").data["title"] == "work"


def test_fields_keep_their_order_and_show_zeros(decklog: Program, log_folder: Path) -> None:
    head = decklog("runs", "find", "--fields", "replans,goal,id").out.splitlines()[0]
    assert head.split() == ["replans", "goal", "id"]


def test_importing_an_empty_file_fails(decklog: Program, log_folder: Path) -> None:
    (log_folder / "empty.jsonl").write_bytes(b"")
    said = decklog("import", "beads", "empty.jsonl")
    assert said.code != 0
    assert "empty" in said.err


def test_restore_of_another_file_names_that_file(decklog: Program, log_folder: Path) -> None:
    (log_folder / "notes.txt").write_text("not a database\n" * 200)
    said = decklog("restore", "notes.txt")
    assert said.code == 1
    assert "notes.txt is not a SQLite database" in said.err


def test_standup_names_a_decision_that_waits(decklog: Program, log_folder: Path) -> None:
    decklog("approvals", "ask", "run_1", "May I push?", "--by", "dev", "--about", '"git push"')
    assert "decision waits: May I push?" in decklog("standup").out


@pytest.mark.slow
def test_workflow_load_reads_the_file_at_a_path(decklog: Program, log_folder: Path) -> None:
    step = {"next_agent": "tech_lead", "action": "spawn"}
    path = log_folder / "transitions.json"
    path.write_text(json.dumps({"_version": "1.3.0", "developer": {"READY_FOR_QA": step}}))

    for word in (str(path), f"@{path}"):
        assert decklog("--json", "workflow", "load", word).data["transitions"] == 1
    missing = decklog("workflow", "load", str(log_folder / "missing.json"))
    assert missing.code == 2
    assert "a JSON object or a file that holds one" in missing.err


def test_runs_finish_warns_of_unfinished_tasks(decklog: Program, log_folder: Path) -> None:
    decklog("plan", "one", "two", "--run", "run_1")
    as_json = decklog("runs", "finish", "run_1", "--json")
    assert (as_json.code, as_json.envelope["warnings"]) == (0, ["run run_1 is completed with 2 unfinished tasks"])
    as_text = decklog("runs", "finish", "run_1")
    assert as_text.code == 0
    assert "warning: run run_1 is completed with 2 unfinished tasks" in as_text.err


@pytest.mark.parametrize(
    ("words", "step"),
    [
        (("tasks", "show", "nope"), "decklog tasks find"),
        (("runs", "show", "nope"), "decklog runs find"),
        (("approvals", "show", "nope"), "decklog approvals find"),
    ],
)
def test_next_step_of_a_missing_record_lists_records_of_its_kind(
    decklog: Program, log_folder: Path, words: tuple[str, ...], step: str
) -> None:
    said = decklog(*words, cwd=log_folder)
    assert (said.code, step in said.err) == (3, True), said.err
