"""Seccomp: a Linux process denies itself and its children sockets to other machines.

Landlock restricts only TCP. This filter denies all new sockets except local ones. It also denies `io_uring`, which could create
sockets past the filter. Seccomp is one system call, so no library is needed.
"""

import ctypes
import errno
import os
import struct

SET_SECCOMP, MODE_FILTER = 22, 2
GET_ACTION_AVAILABLE = 2
ALLOW, REFUSE = 0x7FFF0000, 0x00050000
LOAD, IF_EQUAL, IF_AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16
UNIX, NETLINK = 1, 16
IO_URING_SETUP = 425
# The x32 system call numbers of x86 kernels, which include socket calls.
X32 = 0x40000000
# By machine: the kernel's architecture number, and the system call numbers of `socket` and `seccomp`.
MACHINES = {"x86_64": (0xC000003E, 41, 317), "aarch64": (0xC00000B7, 198, 277)}


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


_libc = ctypes.CDLL(None, use_errno=True)


def is_available() -> bool:
    """Return whether this kernel supports such a filter, on a machine whose call numbers are known."""
    machine = MACHINES.get(os.uname().machine)
    if machine is None:
        return False
    action = ctypes.c_uint32(REFUSE)
    return bool(_libc.syscall(machine[2], GET_ACTION_AVAILABLE, 0, ctypes.byref(action)) == 0)


def refuse_network() -> None:
    """Permanently deny this process and its children all sockets except local ones."""
    steps = _steps(*MACHINES[os.uname().machine][:2])
    program = _Program(len(steps), b"".join(steps))
    if _libc.prctl(SET_SECCOMP, MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "the network can't be denied")


def _steps(architecture: int, socket: int) -> list[bytes]:
    """Build the filter; each test has a jump distance for true and one for false."""
    return [
        _step(LOAD, ARCHITECTURE),
        _step(IF_EQUAL, architecture, 0, 9),
        _step(LOAD, NUMBER),
        _step(IF_AT_LEAST, X32, 7, 0),
        _step(IF_EQUAL, IO_URING_SETUP, 6, 0),
        _step(IF_EQUAL, socket, 0, 3),
        _step(LOAD, FIRST_ARGUMENT),
        _step(IF_EQUAL, UNIX, 1, 0),
        _step(IF_EQUAL, NETLINK, 0, 1),
        _step(RETURN, ALLOW),
        _step(RETURN, REFUSE | errno.EACCES),
        _step(RETURN, REFUSE | errno.ENOSYS),
    ]


def _step(code: int, value: int, if_so: int = 0, if_not: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_so, if_not, value)
