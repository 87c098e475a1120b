"""Every tool that a toolbox has, and what the toolbox must know of each."""

from decklog.guard.calls.tool import Tool
from decklog.guard.files.files import edit_file, read_file, write_file
from decklog.guard.patches.apply import apply_patch, generate_diff
from decklog.guard.search.search import glob, grep, list_files
from decklog.guard.shell import background, shell
from decklog.guard.symbols.symbols import find_symbol
from decklog.guard.toolbox import expected

TOOLS = (
    Tool.of(read_file, hidden=("limit",)),
    Tool.of(list_files),
    Tool.of(glob),
    Tool.of(grep),
    Tool.of(find_symbol),
    Tool.of(generate_diff),
    Tool.of(write_file, changes=True, expect=expected.of_write, look=expected.look_at_files),
    Tool.of(edit_file, changes=True, expect=expected.of_edit, look=expected.look_at_files),
    Tool.of(apply_patch, action="edit_file", changes=True, expect=expected.of_patch, look=expected.look_at_files),
    Tool.of(
        shell.run, action="run_cli", changes=True, guard=shell.guard_command, expect=shell.expect_command, look=shell.look_for_run
    ),
    Tool.of(
        background.start_process,
        action="run_cli",
        changes=True,
        guard=shell.guard_command,
        expect=background.expect_process,
        look=background.look_for_process,
    ),
    Tool.of(background.list_processes),
    Tool.of(background.process_logs, action="get_process_logs"),
    Tool.of(background.stop_process),
)
