import io
import json
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.cli import run


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def feed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8"))


@pytest.fixture
def db(tmp_path: Path) -> str:
    path = str(tmp_path / "decklog.db")
    with Decklog.open(path) as log:
        log.runs.start("goal", run_id="run_1")
    return path


def test_commands_are_judged_one_a_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    feed(monkeypatch, "ls -la\n\ngit push --force\nsudo id\n")
    assert run(["tools", "judge"]) == 0
    assert [line.split("\t")[0] for line in lines(capsys)] == ["allow", "ask", "deny"]


def test_commands_are_judged_as_json_lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    feed(monkeypatch, '"ls; id"\n["echo", "sudo id"]\n{"command": "sudo id", "id": 3}\n')
    assert run(["tools", "judge", "--jsonl"]) == 0
    answers = [json.loads(line) for line in lines(capsys)]
    assert [answer["decision"] for answer in answers] == ["allow", "allow", "deny"]
    assert all({"command", "rule", "reason"} <= answer.keys() for answer in answers)


def test_an_exit_code_tells_the_worst_verdict(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for text, code in (("ls\n", 0), ("git push -f\nls\n", 7), ("sudo id\ngit push -f\n", 6), ("git push -f\nsudo id\n", 6)):
        feed(monkeypatch, text)
        assert run(["tools", "judge", "--exit-code"]) == code
    feed(monkeypatch, "{}\n")
    assert run(["tools", "judge", "--jsonl"]) == 2


def test_judging_gives_one_envelope_with_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    feed(monkeypatch, "ls\nsudo id\n")
    assert run(["tools", "judge", "--json"]) == 0
    envelope = json.loads(capsys.readouterr().out)
    assert (envelope["ok"], [one["decision"] for one in envelope["data"]]) == (True, ["allow", "deny"])


def test_paths_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "link").symlink_to("/etc")
    root = ["--root", str(tmp_path)]
    assert run(["tools", "check-path", "a.py", "../b", "link/passwd", ".env", *root]) == 0
    assert [line.split("\t")[:2] for line in lines(capsys)] == [
        ["allow", "-"],
        ["deny", "outside"],
        ["deny", "symlink-out"],
        ["deny", "secret"],
    ]
    assert run(["tools", "check-path", "src/a.py", *root, "--op", "write", "--allowed", "docs/**", "--exit-code"]) == 4
    capsys.readouterr()
    feed(monkeypatch, '"a b.py"\n"../x"\n')
    assert run(["tools", "check-path", "--jsonl", *root]) == 0
    answers = [json.loads(line) for line in lines(capsys)]
    assert [answer["allowed"] for answer in answers] == [True, False]
    assert answers[0]["leads_to"] == str(tmp_path / "a b.py")


def test_the_tools_are_listed_with_their_schemas(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tools", "list", "--json"]) == 0
    tools = json.loads(capsys.readouterr().out)["data"]
    assert {"read_file", "run", "stop_process"} <= {tool["name"] for tool in tools}
    assert all(tool["input_schema"]["type"] == "object" for tool in tools)
    assert run(["tools", "list"]) == 0
    assert "Run a command" in capsys.readouterr().out


def test_a_tool_is_called_and_its_call_is_on_record(db: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "place"
    place.mkdir()
    (place / "a.txt").write_text("hello\n")
    words = ["tools", "call", "run_1", "read_file", '{"path": "a.txt"}', "--root", str(place), "--db", db, "--agent", "dev"]
    assert run([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["data"]["text"] == "hello\n"
    with Decklog.open(db) as log:
        assert log.journal.find("run_1", kind="tool")[0].agent == "dev"


def test_what_a_tool_refuses_is_an_exit_code(db: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = ["--root", str(tmp_path), "--db", db, "--json"]
    for tool, arguments, code in (
        ("read_file", '{"path": "missing"}', 3),
        ("read_file", '{"path": "../x"}', 4),
        ("run", '{"command": "sudo id"}', 6),
        ("read_file", "[]", 2),
        ("read_file", "{}", 1),
        ("fly", "{}", 3),
    ):
        assert run(["tools", "call", "run_1", tool, arguments, *common]) == code
        assert json.loads(capsys.readouterr().out)["ok"] is False


def test_open_effects_are_listed(db: str, capsys: pytest.CaptureFixture[str]) -> None:
    with Decklog.open(db) as log:
        log.effects.intend("run_1", "s1", "run", key="k", actor="someone")
    assert run(["effects", "open", "run_1", "--db", db, "--json"]) == 0
    assert [one["step"] for one in json.loads(capsys.readouterr().out)["data"]] == ["s1"]
