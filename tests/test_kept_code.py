"""Code that is kept together is the code of its sources, and never in the way."""

import subprocess
import sys
from pathlib import Path

from decklog.kept_code import KeptCode
from tests.db.processes import unmeasured

# Takes the part of a library, under a name that is kept.
_BEGIN = """
import sys
from pathlib import Path
from decklog.kept_code import KeptCode
folder, path = Path(sys.argv[1]), sys.argv[2]
source = folder / "re2" / "__init__.py"

def opened():
    global kept
    sys.modules.pop("re2", None)
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, KeptCode)]
    kept = KeptCode(path)
    kept.open()
    sys.meta_path.insert(0, kept)
    return kept

def loaded():
    import re2
    return re2

sys.path.insert(1, str(folder))
first = opened()
assert loaded().NUMBER == 1
first.keep()
"""


def run(folder: Path, code: str) -> None:
    """Run code in a Python whose first import of a module is kept in a file."""
    (folder / "re2").mkdir()
    (folder / "re2" / "__init__.py").write_text('"""A library."""\n\nNUMBER = 1\n', encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", _BEGIN + code, str(folder), str(folder / "calls.kept")],
        # Nothing is kept where a user wants no compiled code to be written.
        env={name: value for name, value in unmeasured().items() if name != "PYTHONDONTWRITEBYTECODE"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_module_comes_from_the_file_and_is_the_same_in_all_else(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
plain = {name: getattr(loaded(), name) for name in ("__file__", "__cached__", "__path__", "__doc__", "__name__", "__package__")}
opened()
module = loaded()
assert type(module.__loader__).__module__ == "decklog.kept_code" and module.NUMBER == 1
assert {name: getattr(module, name) for name in plain} == plain
before = Path(path).stat().st_ino
kept.keep()
assert Path(path).stat().st_ino == before, "nothing was found elsewhere, so nothing is written"
import inspect
assert inspect.getsource(module) == source.read_text()
""",
    )


def test_a_source_that_changed_is_read_anew_and_kept_as_it_is_now(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
source.write_text("NUMBER = 22\\n")
changed = opened()
assert loaded().NUMBER == 22 and type(loaded().__loader__).__name__ == "SourceFileLoader"
changed.keep()
opened()
assert loaded().NUMBER == 22 and type(loaded().__loader__).__name__ == "_Loader"
source.unlink()
opened()
assert not hasattr(loaded(), "NUMBER"), "it is no longer there"
""",
    )


def test_a_file_that_is_cut_off_overwritten_or_closed_is_passed_over(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
import os
whole = Path(path).read_bytes()
for content in (b"", whole[:4], whole[:-9], bytes(len(whole)), b"\\xff" * len(whole)):
    Path(path).write_bytes(content)
    opened()
    assert loaded().NUMBER == 1 and type(loaded().__loader__).__name__ == "SourceFileLoader"
Path(path).write_bytes(whole)
opened()
os.dup2(os.open("/dev/zero", os.O_RDONLY), kept._file)
assert loaded().NUMBER == 1
opened()
os.close(kept._file)
assert loaded().NUMBER == 1
sys.path.append("/elsewhere")
opened()
assert type(loaded().__loader__).__name__ == "SourceFileLoader", "another path may lead to another module"
""",
    )


def test_whoever_may_not_write_the_file_goes_on_without(tmp_path: Path) -> None:
    kept = KeptCode(str(tmp_path / "nowhere" / "calls.kept"))
    kept.open()
    kept._passed.clear()  # as if every module had been found elsewhere
    kept.keep()
    assert list(tmp_path.iterdir()) == []


def test_what_a_body_imports_is_run_before_it_and_is_the_same_in_all_else(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
inner, broken = source.with_name("inner.py"), source.with_name("broken.py")
source.write_text("from re2.inner import NUMBER\\ntry:\\n    import re2.broken\\nexcept ImportError:\\n    FAILED = True\\n")
inner.write_text("NUMBER = 3\\n")
broken.write_text("raise ImportError('not here')\\n")

def again():
    for name in [name for name in sys.modules if name.startswith("re2.")]:
        del sys.modules[name]
    opened()
    found = loaded()
    assert found.NUMBER == 3 and found.FAILED and found.inner is sys.modules["re2.inner"] and "re2.broken" not in sys.modules
    sought = [name for name in asked if name.startswith("re2.")]
    asked.clear()
    kept.keep()
    return sought, {name: getattr(found.inner, name) for name in ("__file__", "__cached__", "__name__", "__package__")}

asked, find = [], KeptCode.find_spec
KeptCode.find_spec = lambda self, name, *rest: asked.append(name) or find(self, name, *rest)
assert "re2.inner" in again()[0], "nothing is known yet"
_, plain = again()
sought, unsought = again()
assert "re2.inner" not in sought and "re2.broken" in sought and unsought == plain
inner.write_text("NUMBER = 1 + 1 + 1\\n")
assert "re2.inner" in again()[0], "its source is another one"
again()
assert "re2.inner" not in again()[0]
from threading import Event, Thread
end = Event()
thread = Thread(target=end.wait)
thread.start()
assert "re2.inner" in again()[0], "another thread might come upon half of it"
end.set()
thread.join()
""",
    )
