"""A git directory written by hand: no template, no settings of anybody's, and the same on every computer."""

from pathlib import Path


def write(
    folder: Path, *, branch: str, commit: str | None, borrowed: Path | None, settings: str = "", is_sha256: bool = False
) -> None:
    """Make an empty git directory; with `borrowed`, it has all objects of that folder without a copy."""
    for name in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info"):
        (folder / name).mkdir(parents=True, mode=0o700)
    (folder / "HEAD").write_text(f"ref: refs/heads/{branch}\n", encoding="utf-8")
    extension = "[extensions]\n\tobjectFormat = sha256\n" if is_sha256 else ""
    (folder / "config").write_text(
        f"[core]\n\trepositoryFormatVersion = {int(is_sha256)}\n\tfileMode = true\n\tbare = false\n\tlogAllRefUpdates = true\n"
        f"[gc]\n\tauto = 0\n{extension}{settings}",
        encoding="utf-8",
    )
    if borrowed is not None:
        borrow(folder, borrowed)
    if commit is not None:
        reference = folder / "refs/heads" / branch
        reference.parent.mkdir(parents=True, exist_ok=True)
        reference.write_text(f"{commit}\n", encoding="ascii")


def borrow(folder: Path, objects: Path) -> None:
    """Let a git directory have all objects of a folder, and of no other."""
    info = folder / "objects/info"
    info.mkdir(parents=True, exist_ok=True)
    path = info / "alternates"
    path.unlink(missing_ok=True)
    path.write_bytes(str(objects).encode(errors="surrogateescape") + b"\n")


def quoted(text: str) -> str:
    """Write a value as git's settings want it."""
    plain = "".join(letter for letter in text if letter >= " " and letter != "\x7f")
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'
