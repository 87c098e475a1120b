"""Compiled modules of the program, kept together in one file beside those that Python keeps one by one.

Python looks for a module in all folders of its path, reads each folder before it looks into it, and opens, checks and reads two
files: for the modules of a short call that takes a third of what importing them does. Here their places are known, and only
whether a source is still the one that was compiled is asked. A call that found modules elsewhere writes the file, which may be
deleted at any time.

Even so, Python asks every finder, takes two locks and makes a dozen notes for each module: a sixth of a short call. So the file
also tells which modules the body of each one imports. They are run before it without any of that, and the body finds them there.
"""

import os
import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import ExtensionFileLoader, SourceFileLoader
from _imp import source_hash
from _thread import _count as count_of_threads
from marshal import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, ModuleType

    # The source of a module, when it was changed and its size; whether it is a package; where its code begins, and its length;
    # the modules that its body imports.
    Place = tuple[str, int, int, bool, int, int, tuple[str, ...]]

# What commands import. What makes a server begins once and would make the file a large one.
_OURS = frozenset({"decklog", "apsw", "click", "re2", "_re2"})
_LAYOUT = 2
_NUMBER = 8


class _Loader(SourceFileLoader):
    """Runs the kept code of a module; all else is as if Python had found the module itself."""

    kept: "tuple[KeptCode, Place]"

    def get_code(self, fullname: str) -> "CodeType | None":
        kept, place = self.kept
        return kept.code_at(place) or super().get_code(fullname)

    def exec_module(self, module: "ModuleType") -> None:
        kept, place = self.kept
        if (code := kept.code_at(place)) is None:
            super().exec_module(module)
        else:
            kept.run(module, place, code)


class KeptCode:
    """A file of compiled modules, and the finder of those in it whose sources are still the same."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._places: dict[str, Place] = {}
        # Those that were here before could not be found in the file, and are not kept.
        self._passed = set(sys.modules)
        self._file = -1
        self._identity = (-1, -1)
        # Those that the body which runs now had Python look for, and what bodies import that the file does not know of.
        self._sought: list[str] = []
        self._learned: dict[str, tuple[str, ...]] = {}

    def open(self) -> None:
        """Read what the file holds; one that is not there, or was made for another Python, holds nothing."""
        try:
            self._file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            found = os.fstat(self._file)
            self._identity = (found.st_dev, found.st_ino)
            start = int.from_bytes(os.pread(self._file, _NUMBER, 0), "little")
            if 0 < start < found.st_size:
                said, places = loads(os.pread(self._file, found.st_size - start, start))
                self._places = places if said == _surroundings() else {}
        except (OSError, EOFError, ValueError, TypeError):
            return

    def find_spec(self, name: str, *_rest: object) -> "ModuleSpec | None":
        """Say where a module is, if it is kept here and its source is the one that was compiled."""
        place = self._places.get(name)
        if place is None or _state(place[0]) != place[1:3]:
            return None
        return self._spec(name, place)

    def _spec(self, name: str, place: "Place") -> "ModuleSpec":
        self._passed.add(name)
        source, _, _, is_package, _, length, _ = place
        loader = _Loader(name, source) if length else ExtensionFileLoader(name, source)
        spec = ModuleSpec(name, loader, origin=source, is_package=is_package)
        spec.has_location = True
        if type(loader) is _Loader:
            loader.kept = (self, place)
            folder, _, file = source.rpartition(os.sep)
            spec.cached = f"{folder}/__pycache__/{file[:-3]}.{sys.implementation.cache_tag}.pyc"
            if is_package:
                spec.submodule_search_locations = [folder]
        return spec

    def run(self, module: "ModuleType", place: "Place", code: "CodeType") -> None:
        """Run the body of a module, after the modules that it imports."""
        name = module.__name__
        # Nobody else may come upon a module whose body has not run to its end, which is what Python's locks are for.
        is_alone = not count_of_threads()
        if is_alone:
            for other in place[6]:
                if other not in sys.modules:
                    self._run_unsought(other)
        around, self._sought = self._sought, []
        try:
            exec(code, module.__dict__)
            if self._sought and is_alone:
                self._learned[name] = (*place[6], *self._sought)
        finally:
            self._sought = around
        around.append(name)

    def _run_unsought(self, name: str) -> None:
        """Make a module as Python would; leave it to Python wherever there is a doubt."""
        parent, _, last = name.rpartition(".")
        place = self._places.get(name)
        if place is None or not place[5] or (parent and parent not in sys.modules) or _state(place[0]) != place[1:3]:
            return
        if (code := self.code_at(place)) is None:
            return
        spec = self._spec(name, place)
        module = type(sys)(name)
        names = module.__dict__
        names["__spec__"], names["__loader__"], names["__package__"] = spec, spec.loader, spec.parent
        names["__file__"], names["__cached__"] = spec.origin, spec.cached
        if place[3]:
            names["__path__"] = spec.submodule_search_locations
        sys.modules[name] = module
        sought = self._sought
        self._sought = []
        try:
            self.run(module, place, code)
        except Exception:  # noqa: BLE001
            # The body that imports it meets the same, and may know what to do.
            del sys.modules[name]
            return
        finally:
            self._sought = sought
        if parent:
            setattr(sys.modules[parent], last, sys.modules[name])

    def code_at(self, place: "Place") -> "CodeType | None":
        """Read the code of a module; None where somebody closed the file, and another may have its number by now."""
        found = self._read(place)
        return None if found is None else loads(found)

    def _read(self, place: "Place") -> bytes | None:
        try:
            found = os.fstat(self._file)
            is_ours = (found.st_dev, found.st_ino) == self._identity
            return os.pread(self._file, place[5], place[4]) if is_ours else None
        except OSError:
            return None

    def keep(self) -> None:
        """Write the file anew if modules were found elsewhere. Where that is not allowed, calls go on as they are."""
        if sys.dont_write_bytecode:
            return
        new = {
            name: found for name, module in sys.modules.items() if name not in self._passed and (found := _found(name, module))
        }
        if new:
            # What the bodies of these import was noted for those that import them.
            self._learned.clear()
        if new or self._learned:
            try:
                self._write({**dict(self._still_good()), **new})
            except OSError:
                return

    def _still_good(self) -> "Iterator[tuple[str, tuple[Place, bytes]]]":
        for name, place in self._places.items():
            if _state(place[0]) == place[1:3] and (code := self._read(place)) is not None:
                yield name, (place, code)

    def _write(self, modules: "dict[str, tuple[Place, bytes]]") -> None:
        places: dict[str, Place] = {}
        codes: list[bytes] = []
        start = _NUMBER
        for name, (place, code) in modules.items():
            places[name] = (*place[:4], start, len(code), self._learned.get(name, place[6]))
            codes.append(code)
            start += len(code)
        beside = f"{self.path}.{os.getpid()}"
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644), "wb") as file:
            file.write(start.to_bytes(_NUMBER, "little"))
            file.writelines(codes)
            file.write(dumps((_surroundings(), places)))
            file.flush()
            # After a power cut it is whole or not there: nobody would look for the fault of a call in it.
            os.fsync(file.fileno())
        os.replace(beside, self.path)


def _surroundings() -> str:
    """Tell all that compiled code, and where it is found, depends on."""
    return f"{_LAYOUT} {sys.version} {sys.path[1:]}"


def _state(source: str) -> tuple[int, int] | None:
    try:
        found = os.stat(source)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _found(name: str, module: "ModuleType") -> "tuple[Place, bytes] | None":
    """Give the place and the code of a module that Python itself found, if it is one of those that are kept."""
    first = name.partition(".")[0]
    spec = getattr(module, "__spec__", None)
    if spec is None or spec.name != name or not (first in _OURS or first in sys.stdlib_module_names):
        return None
    kind = type(spec.loader)
    if kind not in (SourceFileLoader, ExtensionFileLoader) or (state := _state(spec.origin)) is None:
        return None
    code = b"" if kind is ExtensionFileLoader else dumps(spec.loader.get_code(name))
    return (spec.origin, *state, spec.submodule_search_locations is not None, 0, len(code), ()), code


def kept_code() -> KeptCode | None:
    """Have modules found in the file from here on; None where Python was told to find or keep them in another way."""
    if sys.pycache_prefix or sys.flags.optimize or os.environ.get("PYTHONPATH"):
        return None
    number = source_hash(0, _surroundings().encode(errors="surrogateescape")).hex()
    folder = os.path.join(os.path.dirname(__file__), "__pycache__")
    kept = KeptCode(os.path.join(folder, f"calls.{sys.implementation.cache_tag}.{number}.kept"))
    kept.open()
    sys.meta_path.insert(0, kept)
    return kept
