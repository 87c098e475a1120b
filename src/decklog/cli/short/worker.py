"""Who calls: the name that a worker has in the log, and what tells two of one name apart."""

import os

from decklog.cli.agents import recognised
from decklog.errors import Invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# Programs that only start another one: behind them stands whoever really calls.
_BETWEEN = frozenset(
    (
        *("ash", "bash", "busybox", "dash", "fish", "ksh", "sh", "zsh", "chrt", "doas", "env", "ionice", "make", "nice", "nohup"),
        *("script", "setsid", "stdbuf", "sudo", "time", "timeout", "uv", "xargs"),
    )
)
_PARENT, _TERMINAL, _STARTED = 1, 4, 19


class Process:
    """A process as the system tells it; its start, and which system that was, tell it from others of the same number."""

    def __init__(self, number: int, started: str, system: str, terminal: int = 0) -> None:
        self.number = number
        self.started = started
        self.system = system
        self.terminal = terminal

    def spelled(self) -> str:
        return f"{self.number} {self.started} {self.system}"

    @classmethod
    def read(cls, spelled: str) -> "Process | None":
        """Read a process from what `spelled` wrote; None for anything else."""
        parts = spelled.split(" ")
        return cls(int(parts[0]), parts[1], parts[2]) if len(parts) == 3 and parts[0].isdecimal() else None

    @property
    def is_gone(self) -> bool:
        """Whether it surely has ended; of what runs on another machine or in another container nobody here can say so."""
        machine, boot, container = self.system.split("/")
        here, now, own = _system().split("/")
        if machine != here or (boot == now and container != own):
            return False
        seen = _look_at(self.number) if boot == now else None
        return seen is None or seen[1][_STARTED] != self.started


class Worker:
    """A worker: `name` as the log knows it, `instance` for which one of that name it is, `process` for whether it lives."""

    def __init__(self, name: str, instance: str, process: Process, *, is_named: bool) -> None:
        self.name = name
        self.instance = instance
        self.process = process
        # By whoever calls or started it, rather than by what it is.
        self.is_named = is_named


def worker(named: str | None, environment: "Mapping[str, str] | None" = None) -> Worker:
    """Tell who calls: as it says, as its agent's session says, or by the program or terminal that it calls from."""
    given = os.environ if environment is None else environment
    name = named or given.get("DECKLOG_WORKER")
    if name is not None and not name.strip():
        raise Invalid("a worker needs a name", hint="Such as: --as dev-1", field="as")
    process, agent = _caller(), recognised(given)
    instance = agent.session if agent is not None and agent.session else process.spelled()
    if name:
        return Worker(name, instance, process, is_named=True)
    if agent is not None:
        last = agent.session.replace("-", "").replace(" ", "")[-8:] if agent.session else str(process.number)
        return Worker(f"{agent.kind}-{last}", instance, process, is_named=False)
    user = given.get("USER") or given.get("LOGNAME") or str(os.getuid())
    if process.terminal:
        # Windows of one program are told apart by their terminals.
        instance += f" on {process.terminal}"
    seat = f"tty{process.terminal}" if process.terminal else str(process.number)
    return Worker(f"{user}@{os.uname().nodename}-{seat}", instance, process, is_named=False)


def _caller() -> Process:
    """Find the program that calls: the nearest above this one which is no shell and does not only start another."""
    number, terminal = os.getppid(), 0
    seen = _look_at(number)
    while seen is not None:
        program, fields = seen
        terminal = terminal or int(fields[_TERMINAL])
        above = int(fields[_PARENT])
        if program not in _BETWEEN or above <= 1:
            return Process(number, fields[_STARTED], _system(), terminal)
        number, seen = above, _look_at(above)
    return Process(number, "-", _system(), terminal)


def _look_at(number: int) -> "tuple[str, list[str]] | None":
    """Read a process's name and what the system tells of it; None when there is none, or the system does not tell."""
    try:
        with open(f"/proc/{number}/stat", encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        return None
    # A name may hold blanks and parentheses: it ends with the last one.
    head, _, tail = text.rpartition(")")
    return head.partition("(")[2], tail.split()


def _system() -> str:
    """Name this machine, this start of it, and the container in it."""
    machine = os.uname().nodename.replace(" ", "_").replace("/", "_")
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
        return f"{machine}/{boot}/{os.readlink('/proc/self/ns/pid').strip('pid:[]')}"
    except OSError:
        return f"{machine}/-/-"
