"""Lists the processes that hold locks on a log's files, on systems with /proc/locks."""

import os

_LOCKS = "/proc/locks"


def holders_of(path: str, table: str = _LOCKS) -> list[dict[str, object]]:
    """List the locks that other processes hold on a file: pid, command and whether it is exclusive.

    The file is not opened for it: closing it again would drop the locks that SQLite holds for this process.
    """
    try:
        status = os.stat(path)
        with open(table, encoding="ascii", errors="replace") as file:
            lines = [line.replace("->", "").split() for line in file]
    except FileNotFoundError:
        return []
    place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    found: dict[int, dict[str, object]] = {}
    for words in lines:
        if len(words) >= 8 and words[5] == place and (pid := int(words[4])) not in (0, -1, os.getpid()):
            exclusive = words[3] == "WRITE"
            known = found.setdefault(pid, {"pid": pid, "command": _command(pid), "exclusive": exclusive})
            known["exclusive"] = known["exclusive"] or exclusive
    return list(found.values())


def _command(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
    except OSError:
        return ""
    return b" ".join(words).decode(errors="replace").strip()[:200]
