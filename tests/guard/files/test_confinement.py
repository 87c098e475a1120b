"""Nothing gets out of a root, and nothing honest is kept from it."""

import os
import stat
from pathlib import Path

import pytest

from decklog.core.errors import Closed, Conflict, Denied, Invalid, NotFound, TooLarge
from decklog.guard.files.access import RULES
from decklog.guard.files.path_check import AccessRules, Op, resolve
from decklog.guard.files.root import Root
from decklog.guard.search.search import walk
from tests.every import every
from tests.guard.files.corpus import CANARY, ESCAPES, HARMLESS, Case, a_tree, build, is_refused, is_refused_in_use


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tree = tmp_path_factory.mktemp("tree").resolve()
    build(tree)
    return tree


def _name(case: Case) -> str:
    return f"{case.op} {ascii(case.path)[:50]}"


@every("case", ESCAPES, ids=_name)
def test_an_escape_is_refused_by_the_judgement_and_in_use(case: Case, tree: Path) -> None:
    assert is_refused(case, tree)
    assert is_refused_in_use(case, tree)
    assert (tree / "outside/canary.txt").read_bytes() == CANARY


@every("case", HARMLESS, ids=_name)
def test_a_harmless_path_is_not_refused(case: Case, tree: Path) -> None:
    assert not is_refused(case, tree)
    assert not is_refused_in_use(case, tree)


def test_a_refusal_names_the_rule_the_path_and_a_remedy(tree: Path) -> None:
    with pytest.raises(Denied) as refused:
        resolve(tree / "root", "../outside/canary.txt", "read")
    assert refused.value.details["rule"] == "outside"
    assert refused.value.details["path"] == "../outside/canary.txt"
    assert refused.value.hint == RULES["outside"][1]


@pytest.mark.parametrize(
    ("path", "op", "rule"),
    [
        ("link-out/canary.txt", "read", "symlink-out"),
        ("link-loop", "read", "symlink-loop"),
        ("hard.txt", "write", "hard-link"),
        ("fifo", "read", "special-file"),
        (".GIT/hooks/x", "write", "git"),
        (".git/config", "read", "git-credentials"),
        (".decklog/decklog.db", "read", "decklog"),
        ("src/.env", "read", "secret"),
        (".mcp.json", "write", "control"),
        ("src/.VSCODE/tasks.json", "write", "control"),
        (".devcontainer/devcontainer.json", "write", "control"),
        (".claude/settings.json", "write", "control"),
        ("%2e%2e%2fx", "read", "disguised"),
        ("~/x", "read", "home"),
        ("src/app.py/x", "write", "not-a-directory"),
    ],
)
def test_the_rule_that_fires_is_the_one_that_explains(tree: Path, path: str, op: str, rule: str) -> None:
    with pytest.raises(Denied) as refused:
        resolve(tree / "root", path, op)
    assert refused.value.details["rule"] == rule


def test_a_path_resolves_to_the_real_place_free_of_links(tree: Path) -> None:
    root = tree / "root"
    assert resolve(root, "inside-dir/deep/../app.py") == root / "src/app.py"
    assert resolve(root, "link-inside-chain", "write") == root / "src/app.py"
    assert resolve(root, f"{root}/src") == root / "src"
    assert resolve(root, ".") == root
    assert resolve(root, "not/yet/there.txt", "write") == root / "not/yet/there.txt"


def test_a_root_reached_through_a_link_accepts_both_of_its_names(tmp_path: Path) -> None:
    (tmp_path / "real/src").mkdir(parents=True)
    (tmp_path / "alias").symlink_to("real")
    assert resolve(tmp_path / "alias", str(tmp_path / "alias/src/a.py")) == tmp_path / "real/src/a.py"
    assert resolve(tmp_path / "alias", str(tmp_path / "real/src/a.py")) == tmp_path / "real/src/a.py"


def test_the_directory_a_git_pointer_names_is_guarded_too(tmp_path: Path) -> None:
    (tmp_path / "gitdir/hooks").mkdir(parents=True)
    (tmp_path / ".git").write_text("gitdir: gitdir\n")
    with pytest.raises(Denied, match="belongs to git"):
        resolve(tmp_path, "gitdir/hooks/pre-commit", "write")
    (tmp_path / "gitdir/config").write_text("[core]\n")
    with pytest.raises(Denied, match="credentials"):
        resolve(tmp_path, "gitdir/config", "read")
    with Root(tmp_path) as root:
        assert walk(root).files == ()
    assert resolve(tmp_path, "gitdirectory/x", "write")


def test_a_task_writes_only_what_it_is_allowed(tmp_path: Path) -> None:
    rules = AccessRules().of_task(allowed=["src/**"], forbidden=["src/generated/", "**/migrations/"])
    assert resolve(tmp_path, "src/a.py", "write", rules=rules)
    for path in ("tests/a.py", "src/generated/a.py", "src/migrations/1.sql"):
        with pytest.raises(Denied):
            resolve(tmp_path, path, "write", rules=rules)
        assert resolve(tmp_path, path, "read", rules=rules)


def test_the_list_of_secrets_is_the_callers_to_choose(tmp_path: Path) -> None:
    rules = AccessRules(secrets=("private/",))
    assert resolve(tmp_path, ".env", "read", rules=rules)
    with pytest.raises(Denied, match="secrets"):
        resolve(tmp_path, "private/notes.txt", "read", rules=rules)


def test_reading_what_is_not_there_is_not_found_and_a_directory_is_invalid(root: Root, here: Path) -> None:
    (here / "src").mkdir()
    with pytest.raises(NotFound):
        root.read("src/missing.py")
    with pytest.raises(Invalid, match="is a directory"):
        root.read("src")


def test_a_file_over_the_limit_is_refused(root: Root, here: Path) -> None:
    (here / "big").write_bytes(b"x" * 11)
    with pytest.raises(TooLarge):
        root.read("big", limit=10)
    assert len(root.read("big", limit=11).data) == 11


def test_a_write_keeps_the_mode_and_leaves_no_temporary_file(root: Root, here: Path) -> None:
    (here / "run.sh").write_text("old")
    (here / "run.sh").chmod(0o751)
    root.write("run.sh", b"new")
    assert (here / "run.sh").read_bytes() == b"new"
    assert stat.S_IMODE((here / "run.sh").stat().st_mode) == 0o751
    assert os.listdir(here) == ["run.sh"]


def test_a_new_file_gets_the_rights_the_umask_leaves(root: Root, here: Path) -> None:
    before = os.umask(0o027)
    try:
        root.write("deep/er/new.txt", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((here / "deep/er/new.txt").stat().st_mode) == 0o640


def test_a_write_through_an_inner_link_changes_its_target_and_keeps_the_link(root: Root, here: Path) -> None:
    (here / "real.txt").write_text("old")
    (here / "alias.txt").symlink_to("real.txt")
    assert root.write("alias.txt", b"new") == "real.txt"
    assert (here / "alias.txt").is_symlink()
    assert (here / "real.txt").read_text() == "new"


def test_a_change_that_is_dropped_leaves_nothing_behind(root: Root, here: Path) -> None:
    root.stage("new/deep/file.txt", b"x").abort()
    assert os.listdir(here) == []


def test_a_change_of_a_file_that_someone_else_changed_is_a_conflict(root: Root, here: Path) -> None:
    (here / "a.txt").write_text("one")
    with root.stage("a.txt", b"mine") as change:
        (here / "a.txt").write_text("theirs, longer")
        with pytest.raises(Conflict):
            change.commit()
    assert (here / "a.txt").read_text() == "theirs, longer"


def test_a_directory_swapped_for_a_link_between_staging_and_commit_is_refused() -> None:
    with a_tree() as fresh, Root(fresh / "root") as root:
        with root.stage("src/canary.txt", b"overwritten") as change:
            (fresh / "root/src").rename(fresh / "root/away")
            (fresh / "root/src").symlink_to(fresh / "outside")
            with pytest.raises(Denied) as refused:
                change.commit()
        assert refused.value.details["rule"] == "moved"
        assert (fresh / "outside/canary.txt").read_bytes() == CANARY


def test_a_link_swapped_in_after_the_judgement_is_not_followed() -> None:
    with a_tree() as fresh, Root(fresh / "root") as root:
        exact = root.place("src/app.py", Op.READ).path
        (fresh / "root/src").rename(fresh / "root/away")
        (fresh / "root/src").symlink_to(fresh / "outside")
        with pytest.raises(OSError, match="symbolic link"):
            root.open_exact(exact, os.O_RDONLY)


def test_a_path_with_dots_is_never_opened_as_it_is(root: Root) -> None:
    with pytest.raises(OSError, match="cross-device"):
        root.open_exact("../x", os.O_RDONLY)


def test_opening_leaks_no_handles(tree: Path) -> None:
    with Root(tree / "root") as root:
        before = len(os.listdir("/proc/self/fd"))
        for case in (*ESCAPES, *HARMLESS):
            is_refused(case, tree)
            is_refused_in_use(case, tree)
        root.read("link-inside-chain")
        assert len(os.listdir("/proc/self/fd")) == before


def test_a_root_must_be_a_directory_and_not_everything(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Invalid, match="whole file system"):
        Root("/")
    with pytest.raises(Invalid, match="not a directory"):
        Root(tmp_path / "file")
    with pytest.raises(NotFound):
        Root(tmp_path / "missing")
    with pytest.raises(Invalid, match="not an operation"):
        resolve(tmp_path, "x", "execute")


def test_a_closed_root_says_so(tmp_path: Path) -> None:
    root = Root(tmp_path)
    root.close()
    root.close()
    with pytest.raises(Closed):
        root.read("x")
    with pytest.raises(Closed):
        root.write("x", b"")
