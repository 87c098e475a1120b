"""End a worker process when pytest is killed. Otherwise it would finish its tests and slow down the next run."""

import ctypes
import os
import signal

_SET_DEATH_SIGNAL = 1


def end_with_parent() -> None:
    """Ask the kernel to interrupt this process when its parent ends."""
    # SIGUSR1, because tests end their own processes by other signals and children inherit this handler.
    signal.signal(signal.SIGUSR1, signal.default_int_handler)
    ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGUSR1)
    if os.getppid() == 1:
        os.kill(os.getpid(), signal.SIGUSR1)
