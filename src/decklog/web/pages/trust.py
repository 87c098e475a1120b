"""Trust: who the owner is, what agents may do at each autonomy level, and what was signed."""

from dataclasses import asdict, dataclass
from typing import Any

from decklog.web.site import PageView, SiteRequest

PAGE, LEVELS = 50, range(6)
# Permissions of agents in words, with their policy actions. All actions of a line are permitted together.
PERMISSIONS: dict[str, tuple[str, ...]] = {
    "Read files, history and processes": (
        *("read_file", "list_files", "glob", "grep", "find_symbol", "search_code", "semantic_search", "generate_diff"),
        *("git_diff", "git_log", "git_show", "git_status", "get_process_logs", "list_processes"),
    ),
    "Look things up on GitHub and the web": ("query_github", "query_web"),
    "Run tests, and stop what it started": ("run_tests", "stop_process"),
    "Answer questions": ("answer_question",),
    "Draft patches and proposals outside of the repository": ("write_patch", "write_proposal", "write_scratch"),
    "Change, move and delete files": ("edit_file", "write_file", "move_file", "delete_file"),
    "Run commands": ("run_cli", "run_cli_command"),
    "Commit, and push branches of its own": ("git_add", "git_branch", "git_commit", "git_push"),
    "Open issues and draft pull requests, and comment": ("open_issue", "open_pr", "comment_issue", "comment_pr"),
    "Delete a test, or force-push": ("delete_test", "force_push"),
    "Change the public API, or the version": ("change_public_api", "bump_version"),
    "Edit protected paths and release workflows": ("edit_forbidden_path", "edit_release_workflow"),
    "Fix CI unasked, wake on events, own a task queue": ("fix_ci", "wake_on_event", "own_task_queue"),
    "Merge the kinds of fixes that the owner listed": ("auto_merge",),
    "Edit its own source while dev mode is on": ("edit_own_source",),
    "Open pull requests into the main branch": ("open_main_pr",),
    "Merge pull requests, and release": ("merge_pr", "release"),
    "Push or merge into main without a pull request": ("push_main", "merge_into_main"),
}
YES, ASKS, NO = "yes", "asks", "no"


@dataclass(frozen=True)
class PermissionRow:
    """A row of the permission matrix: for each level `yes`, `asks` (needs an approval each time) or `no`."""

    words: str
    actions: tuple[str, ...]
    cells: tuple[str, ...]


def matrix(log: Any) -> tuple[list[Any], list[PermissionRow]]:
    """Build the matrix of autonomy levels and permissions from the levels' data."""
    levels = [log.trust.explain(level) for level in LEVELS]

    def cell(action: str, level: Any) -> str:
        if action not in level["may"]:
            return NO
        return ASKS if action in level["needs_approval"] else YES

    rows = [
        PermissionRow(words, actions, tuple(cell(actions[0], level) for level in levels))
        for words, actions in PERMISSIONS.items()
    ]
    return levels, rows


def read(asked: SiteRequest) -> PageView:
    """Load the trust contract, its history and the latest signatures."""
    log = asked.log
    contract, history, proofs = log.trust.show(), log.trust.history(limit=PAGE), log.proofs.find(limit=PAGE)
    levels, rows = matrix(log)
    shown = {"contract": contract, "history": history[::-1], "proofs": proofs, "levels": levels, "rows": rows}
    data = {"contract": contract, "history": history, "proofs": proofs, "permissions": [asdict(row) for row in rows]}
    return PageView("trust.html", "Trust", "decklog trust show", data, shown, place="more")
