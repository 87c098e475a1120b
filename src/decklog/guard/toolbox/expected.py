"""Expected changes of a file tool, recorded before it runs, so that recovery can check whether it ran."""

import hashlib
from typing import Any

from decklog.core.errors import NotFound
from decklog.guard.calls.tool import EffectCheck, ToolCall, to_data
from decklog.guard.files import edits
from decklog.guard.files.access import Op
from decklog.guard.files.files import Edited, WrittenFile
from decklog.guard.files.root import Root
from decklog.guard.files.text import Form, decode
from decklog.guard.patches.apply import plan_patch
from decklog.stores.effects.effects import Effect


def digest(data: bytes | None) -> str | None:
    """Return the digest of a file's bytes; None if there is no file."""
    return None if data is None else hashlib.sha256(data).hexdigest()


def _present(root: Root, path: str) -> bytes | None:
    try:
        return root.read(path).data
    except NotFound:
        return None


def _facts(files: dict[str, tuple[bytes | None, bytes | None]], result: Any) -> dict[str, Any]:
    digests = {path: [digest(before), digest(after)] for path, (before, after) in files.items()}
    return {"files": digests, "result": to_data(result)}


def of_write(call: ToolCall, arguments: dict[str, Any]) -> dict[str, Any]:
    """Work out what is expected of `write_file`."""
    path = call.root.place(arguments["path"], Op.WRITE).path
    after = Form().encode(arguments["content"])
    return _facts({path: (_present(call.root, path), after)}, WrittenFile(path, len(after)))


def of_edit(call: ToolCall, arguments: dict[str, Any]) -> dict[str, Any]:
    """Work out what is expected of `edit_file`."""
    content = call.root.read(arguments["path"])
    text, form = decode(content.data)
    old, new = arguments["old_string"], arguments["new_string"]
    text, count = edits.replace(text, old, new, replace_all=arguments.get("replace_all", False))
    return _facts({content.path: (content.data, form.encode(text))}, Edited(content.path, count))


def of_patch(call: ToolCall, arguments: dict[str, Any]) -> dict[str, Any]:
    """Work out what is expected of `apply_patch`."""
    patched, files = plan_patch(call.root, arguments["text"])
    return _facts(files, patched)


def look_at_files(call: ToolCall, effect: Effect) -> EffectCheck:
    """Compare files with their expected states before and after; return an unknown outcome if they match neither."""
    files = effect.facts["files"]
    assert isinstance(files, dict)
    now = {path: digest(_present(call.root, path)) for path in files}
    if all(now[path] == after for path, (_, after) in files.items()):
        return EffectCheck(True, effect.facts["result"])
    if all(now[path] == before for path, (before, _) in files.items()):
        return EffectCheck(False)
    return EffectCheck(None)
