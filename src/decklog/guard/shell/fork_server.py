"""A process that has the supervisor's code in memory and forks a supervisor for each order.

A fresh interpreter for each costs most of what starting a command costs. Like the supervisors, it runs apart from the program
that it serves, with the standard library alone; it ends as soon as nobody can give orders any more.
"""

import ctypes
import gc
import json
import os
import select
import signal
import socket
import struct
import sys
from typing import TYPE_CHECKING

from decklog.guard.shell import process_tree
from decklog.guard.shell.supervisor import HANDLES, supervise

if TYPE_CHECKING:
    from typing import Any

HEAD = struct.Struct(">I")
# A place for the mark in the environment that this process is started with: the kernel shows every fork's own copy of it.
LONGEST_MARK = 1024
ROOM = "-" * LONGEST_MARK
_HANDLE = struct.Struct("i")
_MOST_HANDLES = 4
_getenv = ctypes.CDLL(None).getenv
_getenv.restype = ctypes.c_void_p


def main() -> None:
    """Take orders from standard input, which is a socket, until its other end is closed."""
    # What is there now is there for good: no fork need look through it, and copy it by that.
    gc.freeze()
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.signal(signal.SIGCHLD, _reap)
    channel = socket.socket(fileno=os.dup(0))
    # No handle that comes with an order may get this number: it is a supervisor's standard input.
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    while (order := _order(channel)) is not None:
        line, handles = order
        if os.fork() == 0:
            channel.close()
            # What is read here leaves no trace in the pages that the next fork gets.
            _become_supervisor(json.loads(line.decode()), handles)
        for handle in handles:
            os.close(handle)


def _order(channel: "socket.socket") -> tuple[bytes, list[int]] | None:
    """Read the next order with the handles that come with it; None when there is none, or only half of one."""
    room = socket.CMSG_LEN(_MOST_HANDLES * _HANDLE.size)
    head, extras, _, _ = channel.recvmsg(HEAD.size, room, socket.MSG_CMSG_CLOEXEC)
    handles = [handle for _, _, packed in extras for (handle,) in _HANDLE.iter_unpack(packed)]
    content = head if len(head) < HEAD.size else _exactly(channel, *HEAD.unpack(head))
    return (content, handles) if content.endswith(b"\n") else None


def _exactly(channel: "socket.socket", size: int) -> bytes:
    content = b""
    while len(content) < size and (piece := channel.recv(size - len(content))):
        content += piece
    return content


def _become_supervisor(spec: "dict[str, Any]", handles: list[int]) -> None:
    """Turn this fork into the supervisor of one command."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        trouble = os.open(f"{spec['folder']}/supervisor.err", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(trouble, 2)
        os.close(trouble)
        given = iter(handles)
        for name in HANDLES:
            spec[name] = next(given) if name != "rules_fd" or spec["landlock"] is not None else None
        for tied in given:
            os.dup2(tied, 0)
            os.close(tied)
        _carry(spec["mark"])
        # From here on it is found by its mark. Whoever gave the order up before has looked for it in vain.
        if _is_heard(spec["status_fd"]):
            supervise(spec)
    finally:
        if (error := sys.exception()) is not None:
            # To the folder: this process has nobody else to tell.
            sys.excepthook(type(error), error, error.__traceback__)
        os._exit(0)


def _carry(mark: str) -> None:
    """Show a mark in the environment of this process, as if it had been started with it."""
    ctypes.memmove(_getenv(process_tree.MARK.encode()), mark.encode().ljust(LONGEST_MARK, b"\0"), LONGEST_MARK)


def _is_heard(status: int) -> bool:
    """Return whether whoever gave the order still listens."""
    poll = select.poll()
    poll.register(status, 0)
    return not poll.poll(0)


def _reap(*_: object) -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


if __name__ == "__main__":
    main()
