"""Rules of a repository and allow-list entries."""

from pathlib import Path

import pytest

from decklog.core.errors import Invalid
from decklog.redaction.config import Config, load_config, user_file
from decklog.redaction.redactor import Redactor

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


def repository(tmp_path: Path, content: str) -> Path:
    folder = tmp_path / "repo" / "src"
    folder.mkdir(parents=True)
    (tmp_path / "repo" / "decklog.toml").write_text(content, encoding="utf-8")
    return folder


def test_a_repository_adds_a_rule_without_anybodys_consent(tmp_path: Path) -> None:
    config = load_config(repository(tmp_path, _RULE))
    assert redactor(Config()).redact(f"see {_TOKEN}") == f"see {_TOKEN}"
    assert redactor(config).redact(f"see {_TOKEN}") == "see [redacted:acme-token]"


def test_an_allow_list_entry_of_a_repository_needs_consent(tmp_path: Path) -> None:
    folder = repository(tmp_path, _ALLOW)
    assert load_config(folder).allow == ()
    assert redactor(load_config(folder)).redact(_ALLOWED) == "password=[redacted:password]"
    consented = load_config(folder, lambda path, content: path.name == "decklog.toml" and b"tulip" in content)
    assert redactor(consented).redact(_ALLOWED) == _ALLOWED


def test_an_allow_list_entry_of_the_user_counts(tmp_path: Path) -> None:
    user_file().parent.mkdir(parents=True)
    user_file().write_text(_ALLOW, encoding="utf-8")
    assert redactor(load_config(tmp_path)).redact(_ALLOWED) == _ALLOWED


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('[redaction]\nallow = ["("]\n', "not valid"),
        ("[redaction]\nrules = []\n", "takes"),
        ('[[redaction.rule]]\nid = "x"\n', "needs a pattern"),
        ("[redaction\n", "not valid TOML"),
    ],
)
def test_a_mistake_in_the_settings_is_named(tmp_path: Path, content: str, reason: str) -> None:
    with pytest.raises(Invalid, match=reason):
        load_config(repository(tmp_path, content))
