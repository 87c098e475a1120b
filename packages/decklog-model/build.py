"""Builds `decklog-model`: a wheel of the weights that recall needs, and of nothing that runs.

    python packages/decklog-model/build.py FOLDER [TARGET]

FOLDER has the files, as `decklog memory model show` says where; TARGET is where the wheel goes (dist). Every file is held against
the pins of `decklog.stores.memory.semantic.model` first. The same files make the same wheel, byte by byte.
"""

import base64
import hashlib
import sys
import zipfile
from pathlib import Path

from decklog.stores.memory.semantic import model

VERSION = "1.0.0"
_PACKAGE = "decklog_model"
_PAPERS = ("LICENSE", "NOTICE")
_ABOUT = '"""The weights and the vocabulary of all-MiniLM-L6-v2, as their authors published them."""\n'
_METADATA = f"""Metadata-Version: 2.4
Name: decklog-model
Version: {VERSION}
Summary: The weights of all-MiniLM-L6-v2, for recall by meaning in Decklog
License-Expression: {model.LICENCE}
Requires-Python: >=3.11
"""
_WHEEL = "Wheel-Version: 1.0\nGenerator: decklog-model\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
# The first day that a zip file can name.
_MOMENT = (1980, 1, 1, 0, 0, 0)


def build(folder: Path, target: Path) -> Path:
    """Write the wheel; refuse files that are not the ones that are meant."""
    if (problem := model.damage(str(folder))) is not None:
        raise SystemExit(f"{folder}: {problem}")
    papers = [name for name in _PAPERS if (folder / name).exists()]
    if "LICENSE" not in papers:
        raise SystemExit(f"{folder}: LICENSE is not there, and has to come along")
    info = f"{_PACKAGE}-{VERSION}.dist-info"
    files = {f"{_PACKAGE}/__init__.py": _ABOUT.encode()}
    files |= {f"{_PACKAGE}/{name}": (folder / name).read_bytes() for name in (*(pin.name for pin in model.PINS), *papers)}
    files |= {f"{info}/METADATA": _METADATA.encode(), f"{info}/WHEEL": _WHEEL.encode()}
    files[f"{info}/RECORD"] = _record(files, f"{info}/RECORD").encode()
    target.mkdir(parents=True, exist_ok=True)
    path = target / f"{_PACKAGE}-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, _MOMENT)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return path


def _record(files: dict[str, bytes], own: str) -> str:
    lines = [f"{name},sha256={_digest(content)},{len(content)}" for name, content in files.items()]
    return "\n".join([*lines, f"{own},,"]) + "\n"


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        raise SystemExit(__doc__)
    print(build(Path(sys.argv[1]), Path(sys.argv[2] if len(sys.argv) == 3 else "dist")))
