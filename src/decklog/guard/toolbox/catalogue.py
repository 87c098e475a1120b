"""Every tool that a toolbox has. Tools that change files record what they are expected to do, so that recovery can check it."""

import hashlib
from typing import Any

from decklog.core.errors import NotFound
from decklog.guard.calls.tool import EffectCheck, Tool, ToolCall, to_data
from decklog.guard.files.access import Op
from decklog.guard.files.files import EditedFile, WrittenFile, edit_file, read_file, write_file
from decklog.guard.files.root import Root
from decklog.guard.files.text import TextFormat, decode, replace
from decklog.guard.patches.apply import apply_patch, generate_diff, plan_patch
from decklog.guard.search.search import glob, grep, list_files
from decklog.guard.shell import background, shell
from decklog.guard.symbols.symbols import find_symbol
from decklog.stores.effects.effects import Effect


def _digest(data: bytes | None) -> str | None:
    """Return the digest of a file's bytes; None if there is no file."""
    return None if data is None else hashlib.sha256(data).hexdigest()


def _read_if_present(root: Root, path: str) -> bytes | None:
    try:
        return root.read(path).data
    except NotFound:
        return None


def _expected_facts(files: dict[str, tuple[bytes | None, bytes | None]], result: Any) -> dict[str, Any]:
    digests = {path: [_digest(before), _digest(after)] for path, (before, after) in files.items()}
    return {"files": digests, "result": to_data(result)}


def _expect_write(call: ToolCall, arguments: dict[str, Any]) -> dict[str, Any]:
    """Work out what is expected of `write_file`."""
    path = call.root.place(arguments["path"], Op.WRITE).path
    after = TextFormat().encode(arguments["content"])
    return _expected_facts({path: (_read_if_present(call.root, path), after)}, WrittenFile(path, len(after)))


def _expect_edit(call: ToolCall, arguments: dict[str, Any]) -> dict[str, Any]:
    """Work out what is expected of `edit_file`."""
    content = call.root.read(arguments["path"])
    text, form = decode(content.data)
    old, new = arguments["old_string"], arguments["new_string"]
    text, count = replace(text, old, new, replace_all=arguments.get("replace_all", False))
    return _expected_facts({content.path: (content.data, form.encode(text))}, EditedFile(content.path, count))


def _expect_patch(call: ToolCall, arguments: dict[str, Any]) -> dict[str, Any]:
    """Work out what is expected of `apply_patch`."""
    patched, files = plan_patch(call.root, arguments["text"])
    return _expected_facts(files, patched)


def _verify_files(call: ToolCall, effect: Effect) -> EffectCheck:
    """Compare files with their expected states before and after; return an unknown outcome if they match neither."""
    files = effect.facts["files"]
    assert isinstance(files, dict)
    now = {path: _digest(_read_if_present(call.root, path)) for path in files}
    if all(now[path] == after for path, (_, after) in files.items()):
        return EffectCheck(True, effect.facts["result"])
    if all(now[path] == before for path, (before, _) in files.items()):
        return EffectCheck(False)
    return EffectCheck(None)


TOOLS = (
    Tool.of(read_file, hidden=("limit",)),
    Tool.of(list_files),
    Tool.of(glob),
    Tool.of(grep),
    Tool.of(find_symbol),
    Tool.of(generate_diff),
    Tool.of(write_file, changes=True, expect=_expect_write, verify=_verify_files),
    Tool.of(edit_file, changes=True, expect=_expect_edit, verify=_verify_files),
    Tool.of(apply_patch, action="edit_file", changes=True, expect=_expect_patch, verify=_verify_files),
    Tool.of(
        shell.run, action="run_cli", changes=True, guard=shell.guard_command, expect=shell.expect_command, verify=shell.verify_run
    ),
    Tool.of(
        background.start_process,
        action="run_cli",
        changes=True,
        guard=shell.guard_command,
        expect=background.expect_process,
        verify=background.verify_process,
    ),
    Tool.of(background.list_processes),
    Tool.of(background.process_logs, action="get_process_logs"),
    Tool.of(background.stop_process),
)
