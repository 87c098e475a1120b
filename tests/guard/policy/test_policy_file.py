"""Claims about the policy as data: a changed file changes the answer, a broken one is refused."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from decklog.core.errors import Invalid, NotFound
from decklog.guard.policy import Decision, Policy, judge
from decklog.guard.policy.engine import group_role
from decklog.guard.policy.roles import BUILTIN_ROLES
from decklog.guard.policy.verdict import Event
from tests.db.processes import unmeasured


def written(tmp_path: Path, text: str, name: str = "policy.toml") -> Policy:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return Policy.load(path)


def test_a_program_can_be_allowed_asked_about_or_denied_in_one_line(tmp_path: Path) -> None:
    policy = written(tmp_path, 'allow = ["frobnicate"]\nask = ["ls"]\ndeny = ["cat"]\n')
    assert judge("frobnicate -x").decision is Decision.ASK
    assert judge("frobnicate -x", policy).decision is Decision.ALLOW
    assert judge("ls", policy).decision is Decision.ASK
    assert judge("cat x", policy).decision is Decision.DENY
    assert judge("cat x", policy).rule == "listed-deny"


def test_a_rule_s_decision_can_be_changed_by_its_name(tmp_path: Path) -> None:
    policy = written(tmp_path, '[decisions]\ngit-push-unknown = "allow"\ngit-discard = "deny"\n')
    assert judge("git push", policy).decision is Decision.ALLOW
    assert judge("git reset --hard", policy).decision is Decision.DENY
    assert judge("git push origin main", policy).decision is Decision.DENY


def test_protected_branches_are_a_list_that_can_be_added_to_and_replaced(tmp_path: Path) -> None:
    more = written(tmp_path, '[names]\nprotected_branches = { add = ["stable"], remove = ["trunk"] }\n')
    assert judge("git push origin stable").decision is Decision.ALLOW
    assert judge("git push origin stable", more).decision is Decision.DENY
    assert judge("git push origin main", more).decision is Decision.DENY
    assert judge("git push origin trunk", more).decision is Decision.ALLOW
    only = written(tmp_path, '[names]\nprotected_branches = ["stable"]\n')
    assert judge("git push origin main", only).decision is Decision.ALLOW


def test_secret_paths_are_a_list_that_can_be_added_to(tmp_path: Path) -> None:
    policy = written(tmp_path, '[globs]\nsecret = { add = ["*.crypt"] }\n')
    assert judge("cat notes.crypt").decision is Decision.ALLOW
    assert judge("cat notes.crypt", policy).decision is Decision.DENY
    assert judge("cat id_rsa", policy).decision is Decision.DENY


def test_a_new_rule_is_added_to_the_shipped_ones(tmp_path: Path) -> None:
    rule = """
    [[rules]]
    programs = "pytest"
    flags = "--lf"
    decision = "deny"
    id = "no-last-failed"
    reason = "Run the whole suite; leave --lf out."
    """
    policy = written(tmp_path, rule)
    assert judge("pytest --lf", policy).rule == "no-last-failed"
    assert judge("pytest", policy).decision is Decision.ALLOW
    assert judge("rm -rf /", policy).decision is Decision.DENY


def test_a_json_file_says_the_same(tmp_path: Path) -> None:
    policy = written(tmp_path, json.dumps({"deny": ["curl"]}), "policy.json")
    assert judge("curl localhost", policy).rule == "listed-deny"


@pytest.mark.parametrize(
    "text", ["not = [toml", '[decisions]\ngit-push-unknown = "maybe"\n', '[[programs]]\nnope = "x"\n', '[patterns]\nurl = "("\n']
)
def test_a_broken_file_is_refused_by_its_name(tmp_path: Path, text: str) -> None:
    with pytest.raises(Invalid) as caught:
        written(tmp_path, text)
    assert "policy.toml" in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("key", ["command", "words"])
def test_an_unknown_key_of_a_rule_is_refused(tmp_path: Path, key: str) -> None:
    rule = f"[[rules]]\nprograms = 'pulumi'\n{key} = 'destroy'\nid = 'mine'\ndecision = 'deny'\nreason = 'no'\n"
    with pytest.raises(Invalid, match=f"rule mine: unknown key {key}"):
        written(tmp_path, rule)


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        Policy.load(tmp_path / "none.toml")


@pytest.mark.parametrize("command", [[], 7, None, ["ls", 3], ("ls",)])
def test_only_text_and_lists_of_text_are_judged(command: object) -> None:
    with pytest.raises(Invalid):
        judge(command)  # type: ignore[arg-type]


# Each costs as much as judging several commands does, or more: a hook judges one and is gone.
HEAVY = ["dataclasses", "inspect", "pathlib", "tomllib", "importlib.resources", "tempfile", "urllib.parse", "decklog.log"]
if sys.version_info < (3, 14):
    # Later ones import it for every named tuple.
    HEAVY.append("ast")


def test_judging_a_command_imports_nothing_heavy() -> None:
    judged = "from decklog.guard.policy import judge; judge('cp a b && rm -rf build')"
    code = f"import sys; {judged}; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=unmeasured())
    assert done.stdout.strip() == "[]"


def test_a_pattern_is_looked_for_wherever_it_could_match() -> None:
    policy = Policy.default()
    for name in policy.data["globs"]:
        globs = policy.globs(name)
        for pattern in globs.patterns:
            sample = pattern.replace("/**", "/some/where").replace("**/", "").replace("*", "x").replace("?", "x")
            assert globs.covers(sample), pattern
            assert globs.covers(sample.upper()), pattern


def entries() -> list[dict[str, Any]]:
    tables = [table for table in Policy.default().data.values() if isinstance(table, list)]
    return [entry for table in tables for entry in table if "id" in entry]


def test_every_rule_has_its_own_id_a_reason_and_a_remedy() -> None:
    ids = [entry["id"] for entry in entries()]
    assert len(set(ids)) == len(ids)
    for entry in entries():
        assert entry["reason"][0].isupper(), entry["id"]
        assert entry["reason"].endswith("."), entry["id"]
        assert ";" in entry["reason"], entry["id"]


def test_python_never_mentions_a_rule() -> None:
    package = Path(judge.__code__.co_filename).parent
    code = "".join(file.read_text(encoding="utf-8") for file in package.glob("*.py"))
    quoted = set(re.findall(r'"([a-z][a-z-]+[a-z])"', code))
    assert quoted & {entry["id"].partition("/")[0] for entry in entries()} == set()


def test_every_event_has_a_rule() -> None:
    assert set(Policy.default().events) == set(Event)


def test_every_role_is_described_or_built_in() -> None:
    policy = Policy.default()
    groups = {name for entry in policy.data["roles"] for name in re.compile(entry.get("pattern", "")).groupindex}
    used = {group_role(name) for name in groups if name[0] != "_"}
    for entry in policy.data["programs"]:
        used |= set(entry.get("options", {}).values())
        used |= {entry[key] for key in ("operands", "first", "last", "stdin", "contents", "script") if key in entry}
    known = set(policy.roles) | policy.path_roles | set(BUILTIN_ROLES)
    assert used - known == {"text", "mode", "operand", "module", "replace"}


def test_every_rule_is_about_a_program_the_policy_knows() -> None:
    policy = Policy.default()
    named = {name for entry in policy.data["rules"] for name in entry["programs"]} - {"*"}
    assert [name for name in named if name not in policy.programs] == []


def test_a_file_can_stand_alone(tmp_path: Path) -> None:
    policy = written(tmp_path, 'extends = "none"\nallow = ["ls"]\n')
    assert judge("ls", policy).decision is Decision.ALLOW
    assert judge("cat x", policy).rule == "unknown-program"
    assert judge("bash -c 'ls'", policy).decision is Decision.ASK
    assert judge("python -c 'print(1)' | (", policy).decision is Decision.DENY
