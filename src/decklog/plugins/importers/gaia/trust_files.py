"""Gaia-coder's `em.toml` and `repo_binding.toml`: read, kept as states of the run, proposed to the owner, and written back."""

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, time
from typing import Any

from decklog.core.errors import Invalid
from decklog.log import Decklog
from decklog.records.values import from_json
from decklog.stores.approvals.approval import ApprovalState
from decklog.stores.approvals.trust import tiers
from decklog.stores.approvals.trust.records import SignedChange
from decklog.stores.artifacts.states import State

Document = dict[str, Any]
# A change for the owner to sign, with the arguments that `trust.propose` takes.
Wanted = tuple[SignedChange, dict[str, Any]]

EM = "em.toml"
BINDING = "repo_binding.toml"
SOURCE = "gaia.em"
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_REASON = "gaia-coder's em.toml has it so"


def parse_em(content: str) -> Document:
    """Parse `em.toml`; keep unknown keys."""
    document = _parse(EM, content)
    for name in ("em_handle", "em_channel"):
        if not isinstance(document.get(name), str) or not document[name].strip():
            raise Invalid(f"{EM} needs {name}", field=name)
    tier = document.get("current_tier", 0)
    if type(tier) is not int or not 0 <= tier <= tiers.HIGHEST:
        raise Invalid(f"current_tier in {EM} is {tier!r}; it is 0 to {tiers.HIGHEST}", field="current_tier")
    _check_texts(EM, document, ("auto_merge_classes", "reviewers"))
    return document


def parse_binding(content: str) -> Document:
    """Parse `repo_binding.toml`; keep unknown keys."""
    document = _parse(BINDING, content)
    owner, slash, name = str(document.get("repo", "")).partition("/")
    if not (owner and slash and name) or "/" in name:
        raise Invalid(f"repo in {BINDING} is OWNER/NAME", field="repo")
    for field in ("github_app_id", "github_installation_id"):
        if type(document.get(field)) is not int or document[field] < 1:
            raise Invalid(f"{field} in {BINDING} is a number above 0", field=field)
    for field in ("webhook_secret_keyring_slot", "private_key_keyring_slot"):
        if not isinstance(document.get(field), str):
            raise Invalid(f"{BINDING} needs {field}", field=field)
    _check_texts(BINDING, document, ("allowed_branches", "forbidden_paths"))
    return document


def _parse(name: str, content: str) -> Document:
    try:
        return {key: _plain(value) for key, value in tomllib.loads(content).items()}
    except (tomllib.TOMLDecodeError, RecursionError) as problem:
        raise Invalid(f"{name} is not valid TOML: {problem}") from None


def _plain(value: Any) -> Any:
    """Convert times to text, since a state is JSON."""
    match value:
        case dict():
            return {key: _plain(one) for key, one in value.items()}
        case list():
            return [_plain(one) for one in value]
        case date() | time():
            return value.isoformat()
    return value


def _check_texts(name: str, document: Document, fields: tuple[str, ...]) -> None:
    for field in fields:
        value = document.get(field, [])
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise Invalid(f"{field} in {name} is a list of texts", field=field)


@dataclass(frozen=True)
class TrustProposals:
    """Proposes the terms of `em.toml` to the owner. Nothing takes effect before the owner has signed it."""

    _log: Decklog
    _run_id: str

    def propose(self, document: Document) -> Iterator[str]:
        """Propose the next step towards these terms; yield remarks for the report."""
        trust = self._log.trust.show()
        question = None if trust["is_bound"] else self._ask(document)
        self._withdraw_others(question)
        if question is not None:
            yield f"{EM} is not in force before an owner is bound; see: decklog approvals show {question}"
            return
        yield from self._not_proposed(document, trust)
        wanted = list(_list_changes(document, trust))
        for change, given in wanted[:1]:
            self._write_proposal(change, given)
            yield f"{EM}: {_describe_change(change, given)} waits for the owner's signature; see: decklog trust proposals"
        for change, given in wanted[1:]:
            yield f"{EM}: {_describe_change(change, given)} is proposed by the next import, once the step before it is signed"

    def _ask(self, document: Document) -> str:
        handle, channel = document["em_handle"], document["em_channel"]
        question = (
            f"Adopt gaia-coder's trust settings: owner {handle} ({channel}), autonomy level {document.get('current_tier', 0)}, "
            f"auto-merge of {', '.join(document.get('auto_merge_classes') or ['nothing'])}? To do so, bind the owner "
            f"(decklog trust bind {handle} {channel}) and import again: each step up is then proposed for a signature."
        )
        # The version of the state distinguishes proposals.
        version = self._log.states.get(self._run_id, EM).version
        asked = self._log.approvals.ask(
            self._run_id, question, by="import", about=document, source=SOURCE, subject="trust", key=f"{SOURCE}:{version}"
        )
        return asked.id

    def _withdraw_others(self, kept: str | None) -> None:
        """Withdraw questions about an older `em.toml`, and all of them once an owner key is registered."""
        for approval in self._log.approvals.find(self._run_id, state=ApprovalState.OPEN, limit=200):
            if approval.source == SOURCE and approval.id != kept:
                self._log.approvals.withdraw(approval.id, reason=f"{EM} was imported again")

    def _not_proposed(self, document: Document, trust: Any) -> Iterator[str]:
        """Yield the differences that no proposal can resolve."""
        if document["em_handle"].lower().removeprefix("@") != str(trust.get("owner", "")).lower():
            yield f"{EM} names {document['em_handle']} as the manager; a hand-over also needs their public key"
        if document.get("current_tier", 0) < trust["tier"]:
            yield f"{EM} has tier {document.get('current_tier', 0)}; to lower it here: decklog trust demote"
        if refused := sorted(set(document.get("auto_merge_classes") or []) - set(tiers.listable_classes())):
            yield f"{EM} lists {', '.join(refused)} for auto-merge, which always need a person here"

    def _write_proposal(self, change: SignedChange, given: dict[str, Any]) -> None:
        """Write the proposal, unless the same one is still open."""
        for waiting in self._log.trust.proposals(limit=200):
            terms = from_json(waiting.statement)["terms"]
            if waiting.change == change and list(terms.values()) == list(given.values()):
                return
        self._log.trust.propose(change, _REASON, expires_in_seconds=24 * 3600, by="import", **given)


def _list_changes(document: Document, trust: Any) -> Iterator[Wanted]:
    """List the changes that lead to the terms of `em.toml`; a step up is one autonomy level."""
    if document.get("current_tier", 0) > trust["tier"]:
        yield SignedChange.PROMOTE, {"to_tier": trust["tier"] + 1}
    classes = sorted(set(document.get("auto_merge_classes") or []) & set(tiers.listable_classes()))
    if classes and classes != trust.get("auto_merge"):
        yield SignedChange.AUTO_MERGE, {"fix_classes": classes}
    if document.get("dev_mode_self_edit") is True and not trust.get("is_dev_mode"):
        yield SignedChange.DEV_MODE, {"is_on": True}
    reviewers = sorted(set(document.get("reviewers") or []))
    if reviewers and reviewers != trust.get("reviewers"):
        yield SignedChange.REVIEWERS, {"reviewers": reviewers}


def _describe_change(change: SignedChange, given: dict[str, Any]) -> str:
    [value] = given.values()
    return f"{change} ({', '.join(value) if isinstance(value, list) else value})"


# Export


def em_text(log: Decklog) -> str | None:
    """Format `em.toml`: the imported document with the terms in force here; None without either."""
    document, trust = _newest(log, EM), log.trust.show()
    if "owner" in trust:
        document = {**(document or {}), "em_handle": trust["owner"], "em_channel": trust["channel"]}
        document |= {"dev_mode_self_edit": trust["is_dev_mode"], "auto_merge_classes": trust["auto_merge"]}
        document |= {"current_tier": trust["tier"]}
        more = {"persona_name": trust["persona_name"], "reviewers": trust["reviewers"]}
        document |= {name: value for name, value in more.items() if value}
    return None if document is None else _toml(document)


def binding_text(log: Decklog) -> str | None:
    """Format the last imported `repo_binding.toml`; None if there is none."""
    document = _newest(log, BINDING)
    return None if document is None else _toml(document)


def _toml(document: Document) -> str:
    """Format a document as TOML, with nested objects as inline tables."""
    return "".join(f"{_toml_key(name)} = {_toml_value(value)}\n" for name, value in document.items())


def _toml_key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _toml_value(name)


def _toml_value(value: Any) -> str:
    match value:
        case dict():
            return "{" + ", ".join(f"{_toml_key(name)} = {_toml_value(one)}" for name, one in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(_toml_value, value)) + "]"
        case str():
            # A JSON string is a TOML string, except that TOML escapes DEL.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)


def _newest(log: Decklog, name: str) -> Document | None:
    """Return the newest state with this name in any run."""
    sql = f"select * from {State.table} where name = :name order by updated_at desc, run_id limit 1"
    names, rows = log.db.read(lambda: log.db.rows(sql, {"name": name}))
    if not rows:
        return None
    state = State.from_row(names, rows[0])
    document = log.states.get(state.run_id, name, group_id=state.group_id).document
    return document if isinstance(document, dict) else None
