"""Find and load plug-ins by their entry points in the group `decklog.plugins`, our own among them.

An entry point is called KIND.NAME, such as `importer.beads`, so that plug-ins can be listed without importing any of them.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from functools import cache
from typing import Any

from decklog.core.errors import DecklogError, Invalid, NotFound, Unavailable

GROUP = "decklog.plugins"
# The name of our own package.
OURS = "decklog"
UNLOADABLE = "can't be loaded"


class PluginKind(StrEnum):
    """What a plug-in adds to Decklog."""

    IMPORTER = "importer"
    ADAPTER = "adapter"
    AGENT = "agent"
    MODEL = "model"
    NOTIFIER = "notifier"
    CHECK = "check"


@dataclass(frozen=True)
class Plugin:
    """An installed plug-in and its package, or an entry point of the group that is not usable, and why."""

    kind: str
    name: str
    package: str
    version: str
    entry: Any
    why_ignored: str | None = None

    def load(self, build: Callable[[Any], Any] = lambda loaded: loaded) -> Any:
        """Import the plug-in and pass it to `build`; raise Invalid if that fails."""
        try:
            return build(self.entry.load())
        except Exception as problem:
            hint = f"Update or remove the package: pip uninstall {self.package}"
            raise Invalid(f"the plug-in {self.kind} {self.name} {UNLOADABLE}: {problem}", hint=hint) from problem


def find_plugins() -> tuple[Plugin, ...]:
    """Return the installed plug-ins, ordered by kind and name. Of two with the same name, ours or the first counts."""
    return scan_entry_points()[0]


def find_ignored_entries() -> tuple[Plugin, ...]:
    """Return the entry points of the group that add nothing."""
    return scan_entry_points()[1]


@cache
def scan_entry_points() -> tuple[tuple[Plugin, ...], tuple[Plugin, ...]]:
    """Read the entry points of the group once per process."""
    # Slow to import, and needed by few commands.
    from importlib.metadata import entry_points

    found: dict[tuple[str, str], Plugin] = {}
    ignored: list[Plugin] = []
    entries = sorted(entry_points(group=GROUP), key=lambda entry: (_package(entry)[0] != OURS, entry.name))
    for entry in entries:
        kind, _, name = entry.name.partition(".")
        if (why := _why_ignored(kind, name, found.get((kind, name)))) is None:
            found[kind, name] = Plugin(PluginKind(kind), name, *_package(entry), entry)
        else:
            ignored.append(Plugin(kind if name else "", name or entry.name, *_package(entry), entry, why))
    plugins = sorted(found.values(), key=lambda plugin: (list(PluginKind).index(PluginKind(plugin.kind)), plugin.name))
    return tuple(plugins), tuple(ignored)


def _why_ignored(kind: str, name: str, present: Plugin | None) -> str | None:
    if not name:
        return "ignored: the name is not KIND.NAME"
    if kind not in tuple(PluginKind):
        return f"ignored: unknown kind {kind}"
    if present is not None:
        return "hidden by Decklog's own" if present.package == OURS else f"hidden by that of {present.package}"
    return None


def _package(entry: Any) -> tuple[str, str]:
    return (entry.dist.name, entry.dist.version) if entry.dist is not None else ("unknown", "")


def plugin_names(kind: PluginKind) -> list[str]:
    """Return the names of the installed plug-ins of a kind."""
    return [plugin.name for plugin in find_plugins() if plugin.kind is kind]


def _find_plugin(kind: PluginKind, name: str) -> Plugin | None:
    return next((plugin for plugin in find_plugins() if (plugin.kind, plugin.name) == (kind, name)), None)


def load_plugin(kind: PluginKind, name: str, build: Callable[[Any], Any] = lambda loaded: loaded) -> Any:
    """Load a plug-in by its name, and build something of it; raise NotFound with a suggestion if there is none."""
    if (plugin := _find_plugin(kind, name)) is not None:
        return plugin.load(build)
    names = plugin_names(kind)
    near = get_close_matches(name, names, 1)
    hint = f"Did you mean {near[0]}?" if near else f"There are {', '.join(names) or 'none'}."
    raise NotFound(f"there is no {kind} {name!r}", hint=hint)


@contextmanager
def report_failures(kind: PluginKind, name: str) -> Iterator[None]:
    """Raise Unavailable for what a plug-in raises, except Decklog's own errors."""
    try:
        yield
    except DecklogError:
        raise
    except Exception as problem:
        raise plugin_failure(kind, name, problem) from problem


def plugin_failure(kind: PluginKind, name: str, problem: Exception, where: str = "") -> Unavailable:
    """Build the error for a plug-in that failed, with the package to report it to."""
    what = problem.message if isinstance(problem, DecklogError) else f"{type(problem).__name__}: {problem}"
    plugin = _find_plugin(kind, name)
    hint = f"Report it to the package {plugin.package}." if plugin is not None else None
    return Unavailable(f"the plug-in {kind} {name} failed{where}: {what}", hint=hint)
