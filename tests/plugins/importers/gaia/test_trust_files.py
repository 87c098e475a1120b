"""`em.toml` becomes a proposal to the owner, `repo_binding.toml` a state; both come back on export."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog, ManualClock
from decklog.importing.report import Outcome
from decklog.plugins.importers.gaia.export import GaiaExport
from decklog.plugins.importers.gaia.importer import GaiaImport
from tests.conftest import on_both
from tests.plugins.importers.other_files import build_gaia
from tests.stores.approvals.trust.trust_desk import Desk, make_keys

RUN = "gaia-coder"
EM = """\
em_handle = "ana"
em_channel = "gh-comment"
persona_name = "Deck \\u007f \\"D\\" \\u001b"
dev_mode_self_edit = false
auto_merge_classes = ["doc", "tool"]
current_tier = 2
plan_review_loc_threshold = 200
own = { nested = [1, 2.5, true], "a key" = "b" }
"""
BINDING = """\
repo = "acme/shop"
github_app_id = 17
github_installation_id = 18
webhook_secret_keyring_slot = "gaia-coder/webhook"
private_key_keyring_slot = "gaia-coder/app-key"
allowed_branches = ["auto/*"]
forbidden_paths = ["release/**"]
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "gaia"
    build_gaia(home)
    (home / "em.toml").write_text(EM)
    (home / "repo_binding.toml").write_text(BINDING)
    return home


@pytest.fixture
def desk(log: Decklog, clock: ManualClock, tmp_path: Path) -> Desk:
    (tmp_path / "keys").mkdir()
    return Desk(log, clock, make_keys(tmp_path / "keys"))


def _exported(log: Decklog, folder: Path) -> dict[str, dict[str, Any]]:
    GaiaExport(log, str(folder)).run()
    return {name: tomllib.loads((folder / name).read_text()) for name in ("em.toml", "repo_binding.toml")}


def _questions(log: Decklog) -> list[str]:
    return [one.question for one in log.approvals.find(RUN, state="open") if one.question]


@pytest.mark.slow
@on_both
def test_em_toml_without_an_owner_is_a_question(log: Decklog, home: Path) -> None:
    report = GaiaImport(log, str(home)).run()

    [question] = _questions(log)
    assert "owner ana (gh-comment), autonomy level 2, auto-merge of doc, tool?" in question
    assert (report.tables["em.toml"]["new"], report.tables["repo_binding.toml"]["new"]) == (1, 1)
    assert any("em.toml is not in force before an owner is bound" in note for note in report.notes)
    assert not log.trust.show()["is_bound"]


@pytest.mark.slow
@on_both
def test_em_toml_and_the_repo_binding_come_back_with_keys_that_are_not_known(log: Decklog, home: Path, tmp_path: Path) -> None:
    GaiaImport(log, str(home)).run()

    written = _exported(log, tmp_path / "back")

    assert written == {"em.toml": tomllib.loads(EM), "repo_binding.toml": tomllib.loads(BINDING)}
    assert log.states.get(RUN, "repo_binding.toml").document == tomllib.loads(BINDING)


def test_every_changed_field_of_both_files_comes_with_a_second_import(log: Decklog, home: Path, tmp_path: Path) -> None:
    GaiaImport(log, str(home)).run()
    em = EM.replace("= 2\n", "= 3\n").replace('"ana"', '"bo"').replace('"doc", "tool"', '"test"').replace("= 200", "= 90")
    binding = BINDING.replace("17", "27").replace("18", "28").replace("acme", "apex").replace("auto/", "fix/").replace("-key", "")
    (home / "em.toml").write_text(em)
    (home / "repo_binding.toml").write_text(binding)

    report, third = GaiaImport(log, str(home)).run(), GaiaImport(log, str(home)).run()

    assert {name: found["changed"] for name, found in report.tables.items() if found["changed"]} == {
        "em.toml": 1,
        "repo_binding.toml": 1,
    }
    assert (third.total(Outcome.CHANGED), third.total(Outcome.NEW)) == (0, 0)
    assert _exported(log, tmp_path / "back") == {"em.toml": tomllib.loads(em), "repo_binding.toml": tomllib.loads(binding)}
    [question] = _questions(log)
    assert "owner bo (gh-comment), autonomy level 3, auto-merge of test?" in question


@pytest.mark.slow
@on_both
def test_owner_signs_what_em_toml_says_step_by_step(desk: Desk, log: Decklog, home: Path, tmp_path: Path) -> None:
    GaiaImport(log, str(home)).run()
    desk.bind()
    signed = []
    for _ in range(4):
        report = GaiaImport(log, str(home)).run()
        GaiaImport(log, str(home)).run()
        for proposal in log.trust.proposals():
            signed.append(proposal.change.value)
            log.trust.apply(proposal.statement, desk.sign(proposal.statement))

    assert signed == ["promote", "promote", "auto-merge"]
    assert "em.toml lists tool for auto-merge, which always need a person here" in report.notes
    shown = log.trust.show()
    assert (shown["tier"], shown["auto_merge"], _questions(log)) == (2, ["doc"], [])
    assert _exported(log, tmp_path / "back")["em.toml"]["auto_merge_classes"] == ["doc"]


def test_import_alone_changes_no_trust(desk: Desk, log: Decklog, home: Path) -> None:
    desk.bind()
    (home / "em.toml").write_text('em_handle = "bo"\nem_channel = "cli"\ncurrent_tier = 5\ndev_mode_self_edit = true\n')

    report = GaiaImport(log, str(home)).run()

    shown = log.trust.show()
    assert (shown["owner"], shown["tier"], shown["is_dev_mode"]) == ("ana", 0, False)
    assert any("names bo as the manager; a hand-over also needs their public key" in note for note in report.notes)


def test_dry_run_proposes_nothing(desk: Desk, log: Decklog, home: Path) -> None:
    desk.bind()

    report = GaiaImport(log, str(home), dry_run=True).run()

    assert any("promote (1) waits for the owner's signature" in note for note in report.notes)
    assert list(log.trust.proposals()) == []


@pytest.mark.parametrize(
    "bad",
    [
        "em_handle = ",
        'em_handle = "ana"\n',
        'em_handle = " "\nem_channel = "cli"\n',
        'em_handle = "ana"\nem_channel = "cli"\ncurrent_tier = 6\n',
        'em_handle = "ana"\nem_channel = "cli"\nauto_merge_classes = "doc"\n',
    ],
)
def test_em_toml_that_can_not_be_read_is_kept_and_comes_back(log: Decklog, home: Path, tmp_path: Path, bad: str) -> None:
    (home / "em.toml").write_text(bad)

    report = GaiaImport(log, str(home)).run()

    assert report.tables["em.toml"]["kept"] == 1
    assert (_questions(log), list(log.trust.proposals())) == ([], [])
    GaiaExport(log, str(tmp_path / "back")).run()
    assert (tmp_path / "back" / "em.toml").read_text() == bad


def test_repo_binding_needs_an_owner_and_a_name(log: Decklog, home: Path) -> None:
    (home / "repo_binding.toml").write_text(BINDING.replace("acme/shop", "shop"))

    report = GaiaImport(log, str(home)).run()

    assert report.tables["repo_binding.toml"]["kept"] == 1


def test_log_of_its_own_with_an_owner_writes_em_toml(desk: Desk, log: Decklog, tmp_path: Path) -> None:
    desk.bind()
    desk.promote(2)

    GaiaExport(log, str(tmp_path / "back")).run()

    written = tomllib.loads((tmp_path / "back" / "em.toml").read_text())
    assert (written["em_handle"], written["em_channel"], written["current_tier"]) == ("ana", "gh-comment", 2)
