"""Plug-ins of other packages are found by their entry points and used like our own."""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from decklog import Decklog, Invalid, NotFound
from decklog.cli import run
from decklog.core.plugins import PluginKind, find_plugins, load_plugin, plugin_names
from decklog.models.providers.making import provider_factory
from decklog.models.settings import ModelChoice
from decklog.notify.round import send
from decklog.plugins.trackers import RecordImport
from tests.plugins.conftest import Install

SAMPLE = Path(__file__).parents[2] / "examples" / "plugin"


def test_our_own_plugins_are_entry_points_that_can_be_loaded() -> None:
    ours = [plugin for plugin in find_plugins() if plugin.package == "decklog"]

    assert {"beads", "bazinga", "claude", "vibe-kanban"} <= set(plugin_names(PluginKind.IMPORTER))
    assert {"claude", "codex", "agents-md"} <= set(plugin_names(PluginKind.AGENT))
    for plugin in ours:
        # Adapters need the packages of their frameworks.
        assert plugin.kind is PluginKind.ADAPTER or plugin.load() is not None


def test_a_plugin_with_the_name_of_ours_does_not_replace_it(install: Install) -> None:
    install({"importer.beads": "other_plugins:model", "importer.other": "other_plugins:model"})

    packages = {plugin.name: plugin.package for plugin in find_plugins() if plugin.kind is PluginKind.IMPORTER}
    assert (packages["beads"], packages["other"]) == ("decklog", "other-plugins")


def test_ignored_entry_points_are_listed_with_the_reason(
    install: Install, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(dict.fromkeys(("importr.typo", "nodot", "importer.beads"), "other_plugins:model"))

    assert run(["--json", "plugins"]) == 0
    listed = [row for row in json.loads(capsys.readouterr().out)["data"] if row["package"] == "other-plugins"]
    assert {(row["kind"], row["name"]): row["problem"] for row in listed} == {
        ("importr", "typo"): "ignored: unknown kind importr",
        ("", "nodot"): "ignored: the name is not KIND.NAME",
        ("importer", "beads"): "hidden by Decklog's own",
    }
    run(["plugins", "importer"])
    assert "typo" not in (shown := capsys.readouterr().out)
    assert "hidden by Decklog's own" in shown
    database = str(tmp_path / "log.db")
    Decklog.open(database).close()
    run(["--db", database, "--json", "doctor"])
    assert "importr.typo of other-plugins: ignored" in json.loads(capsys.readouterr().out)["data"]["ignored_plugins"]


def test_a_plugin_that_is_missing_or_broken_is_named_with_a_next_step(install: Install) -> None:
    install({"model.broken": "other_plugins:gone", "nonsense.x": "other_plugins:model"})

    assert "x" not in {plugin.name for plugin in find_plugins()}
    with pytest.raises(Invalid, match="broken can't be loaded") as broken:
        load_plugin(PluginKind.MODEL, "broken")
    assert "pip uninstall other-plugins" in str(broken.value.hint)
    with pytest.raises(NotFound) as missing:
        load_plugin(PluginKind.MODEL, "anthropc")
    assert missing.value.hint == "Did you mean anthropic?"


def test_a_model_provider_plugin_answers_models_of_its_name(install: Install, log: Decklog, tmp_path: Path) -> None:
    install({"model.other": "other_plugins:model"})
    settings: Any = SimpleNamespace(agents={})

    make = provider_factory(log, settings, tmp_path, read=lambda _: None)

    assert make(ModelChoice(name="m", provider="other", model="large")).model == "large"  # type: ignore[attr-defined]


def test_a_notifier_plugin_sends_notices_and_failures_are_retried(install: Install) -> None:
    install({"notifier.other": "other_plugins:notify"})
    notice: Any = SimpleNamespace(as_dict=lambda: dict.fromkeys(("id", "event", "run_id", "made_at"), "x") | {"what": "done"})

    def sent(*target: str) -> Any:
        rule: Any = SimpleNamespace(channel=SimpleNamespace(value="command"), target=list(target), secret_env=None)
        return send(rule, notice, "log", 0)

    assert sent("plugin:other", "room").state == "sent"
    assert sys.modules["other_plugins"].SENT == [("done", ["room"])]
    failed = sent("plugin:other", "down")
    assert (failed.state, failed.error, failed.may_retry) == ("failed", "other: not reached", True)
    assert sent("plugin:gone").may_retry is False


def test_records_of_an_importer_plugin_are_written_once_and_follow_the_source(
    log: Decklog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(SAMPLE))
    from decklog_plugin_sample import TodoImporter

    path = tmp_path / "todo.txt"
    path.write_text("(A) 2026-11-15 Parse +core id:1\nWrite id:2 needs:1\nno id\nLoop id:3 needs:3\n")

    def run(**settings: Any) -> Any:
        return RecordImport(log, str(path), TodoImporter(), name="todo", run_id="todo", **settings).run()

    dry, first, again = run(dry_run=True), run(), run()
    path.write_text("x (A) 2026-11-15 Parse +core id:1\nWrite id:2\n")
    changed = run()

    assert dry.tables == first.tables
    assert first.tables["tasks"]["new"] == again.tables["tasks"]["already"] == 3
    assert "line 3 has no id and was left out" in first.notes
    assert any("links todo-3 with itself" in note for note in first.notes)
    assert (log.tasks.get("todo-1").priority, log.tasks.get("todo-1").tags) == (90, ["core"])
    assert changed.tables["tasks"]["changed"] == 1
    assert log.tasks.get("todo-1").state == "done"
    assert log.journal.verify().ok
    with pytest.raises(Invalid, match="does not look like data of todo"):
        RecordImport(log, str(tmp_path), TodoImporter(), name="todo", run_id="todo").run()


@pytest.mark.slow
def test_the_sample_plugin_works_in_a_fresh_environment(tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True, symlinks=True)
    python = tmp_path / "venv" / "bin" / "python"
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    # Decklog, its dependencies and the build tool come from this environment; nothing is downloaded.
    ours = [path for path in sys.path if path.endswith("site-packages")]
    (site / "ours.pth").write_text("\n".join([*ours, str(Path(__file__).parents[2] / "src")]) + "\n")
    source = tmp_path / "source"
    source.mkdir()
    for path in SAMPLE.iterdir():
        (source / path.name).write_bytes(path.read_bytes()) if path.is_file() else None
    environment = {**os.environ, "HOME": str(tmp_path / "home"), "PIP_NO_INDEX": "1"}
    (tmp_path / "home").mkdir()

    def run(*words: str) -> str:
        done = subprocess.run([str(python), *words], capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("-m", "pip", "-q", "install", "--no-deps", "--no-build-isolation", str(source))
    (tmp_path / "todo.txt").write_text("Parse id:1\nWrite id:2 needs:1\n")

    listed = json.loads(run("-m", "decklog", "--json", "plugins"))
    assert {("importer", "todo"), ("agent", "sample-agent")} <= {(one["kind"], one["name"]) for one in listed["data"]}
    run("-m", "decklog", "init")
    assert "Import a todo.txt list" in run("-m", "decklog", "import", "todo", "--help")
    run("-m", "decklog", "import", "todo", "todo.txt")
    assert "Parse" in run("-m", "decklog", "tasks", "find", "todo")
    run("-m", "decklog", "setup", "sample-agent", "--project")
    assert "decklog" in (tmp_path / ".sample-agent" / "hooks.json").read_text()
    assert "Sample Agent" in run("-m", "decklog", "setup", "sample-agent", "--help")
