"""Rules of a repository and allow-list entries."""

import hashlib
from pathlib import Path

import pytest

from decklog.core.errors import Invalid
from decklog.core.user_consents import give_consent
from decklog.redaction.redactor import Redactor
from decklog.redaction.rules import Config, load_config, user_file

_RULE = """
[[redaction.rule]]
id = "acme-token"
keywords = ["acme_"]
pattern = '(acme_[a-z0-9]{20})'
"""
_TOKEN = "acme_" + "a1b2c3d4e5" * 2
_ALLOW = '[redaction]\nallow = ["tulip-[A-Za-z0-9-]+"]\n'
_ALLOWED = "password=tulip-" + "Harbour-41x"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))


def redactor(config: Config) -> Redactor:
    return Redactor(config.rules, config.allow)


def repository(tmp_path: Path, content: str) -> str:
    folder = tmp_path / "repo" / "src"
    folder.mkdir(parents=True)
    (tmp_path / "repo" / ".git").mkdir()
    (tmp_path / "repo" / "decklog.toml").write_text(content, encoding="utf-8")
    return str(folder)


def test_a_repository_adds_a_rule_without_anybodys_consent(tmp_path: Path) -> None:
    config = load_config(repository(tmp_path, _RULE))
    assert redactor(Config()).redact(f"see {_TOKEN}") == f"see {_TOKEN}"
    assert redactor(config).redact(f"see {_TOKEN}") == "see [redacted:acme-token]"


def consent(git: Path, content: str) -> None:
    give_consent(str(git), hashlib.sha256(content.encode()).hexdigest())


def test_an_allow_list_entry_of_a_repository_needs_consent(tmp_path: Path) -> None:
    folder = repository(tmp_path, _ALLOW)
    assert load_config(folder).allow == ()
    assert redactor(load_config(folder)).redact(_ALLOWED) == "password=[redacted:password]"
    consent(tmp_path / "repo" / ".git", _ALLOW)
    assert redactor(load_config(folder)).redact(_ALLOWED) == _ALLOWED


def test_consent_to_another_version_or_another_clone_allows_nothing(tmp_path: Path) -> None:
    folder = repository(tmp_path, _ALLOW)
    consent(tmp_path / "repo" / ".git", f"{_ALLOW}# another version\n")
    consent(tmp_path / "clone" / ".git", _ALLOW)
    assert load_config(folder).allow == ()


def test_consent_holds_in_every_working_tree_of_a_repository(tmp_path: Path) -> None:
    repository(tmp_path, _ALLOW)
    linked, git = tmp_path / "linked", tmp_path / "repo" / ".git" / "worktrees" / "linked"
    linked.mkdir()
    git.mkdir(parents=True)
    (linked / "decklog.toml").write_text(_ALLOW, encoding="utf-8")
    (linked / ".git").write_text(f"gitdir: {git}\n", encoding="utf-8")
    (git / "commondir").write_text("../..\n", encoding="utf-8")
    assert load_config(str(linked)).allow == ()
    consent(tmp_path / "repo" / ".git", _ALLOW)
    assert load_config(str(linked)).allow == ("tulip-[A-Za-z0-9-]+",)


def test_an_allow_list_entry_of_the_user_counts(tmp_path: Path) -> None:
    file = Path(user_file())
    file.parent.mkdir(parents=True)
    file.write_text(_ALLOW, encoding="utf-8")
    assert redactor(load_config(str(tmp_path))).redact(_ALLOWED) == _ALLOWED


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('[redaction]\nallow = ["("]\n', "not valid"),
        ("[redaction]\nallow = 'demo'\n", "list of patterns"),
        ("[redaction]\nrules = []\n", "takes"),
        ('[[redaction.rule]]\nid = "x"\n', "needs a pattern"),
        ("[redaction\n", "not valid TOML"),
    ],
)
def test_a_mistake_in_the_settings_is_named(tmp_path: Path, content: str, reason: str) -> None:
    with pytest.raises(Invalid, match=reason):
        load_config(repository(tmp_path, content))
