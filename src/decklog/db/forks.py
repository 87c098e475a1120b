"""Tells every open database of a fork: no engine's connection may be used on both sides of one."""

import os
from weakref import WeakSet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    class Forked(Protocol):
        """What minds being forked."""

        def before_fork(self) -> None: ...
        def after_fork_in_parent(self) -> None: ...
        def after_fork_in_child(self) -> None: ...


_open_databases: "WeakSet[Forked]" = WeakSet()


def follow(database: "Forked") -> None:
    """Tell a database of every fork, for as long as it lives."""
    _open_databases.add(database)


def _all(act: "Callable[[Forked], None]") -> "Callable[[], None]":
    def hook() -> None:
        for database in list(_open_databases):
            act(database)

    return hook


os.register_at_fork(
    before=_all(lambda database: database.before_fork()),
    after_in_parent=_all(lambda database: database.after_fork_in_parent()),
    after_in_child=_all(lambda database: database.after_fork_in_child()),
)
