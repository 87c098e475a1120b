"""Build the wheel and the source archive twice, from copies in different folders, and compare them byte by byte.

Without arguments both are built; `wheel` or `sdist` builds one. Prints each archive with its size and digest.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent


def tracked() -> list[str]:
    """List the files that git would commit, new ones too."""
    words = ["git", "-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return [name for name in listed if name and (ROOT / name).is_file()]


def build(folder: Path, names: list[str], targets: list[str], moment: int) -> dict[str, bytes]:
    """Copy the project to a folder, with all files of one time, and build it there; return the archives by name."""
    for name in names:
        target = folder / "project" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)
        os.utime(target, (moment, moment))
    words = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder / "out")]
    for target in targets:
        subprocess.run([*words, "--target", target], cwd=folder / "project", stdout=subprocess.DEVNULL, check=True)
    return {path.name: path.read_bytes() for path in sorted((folder / "out").iterdir())}


def main(targets: list[str]) -> int:
    names = tracked()
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        first = build(Path(one), names, targets, 1_700_000_000)
        second = build(Path(other), names, targets, 1_800_000_000)
    for name, data in first.items():
        print(f"{name}  {len(data):,} bytes  sha256:{hashlib.sha256(data).hexdigest()}")
    different = [name for name, data in first.items() if second.get(name) != data]
    if different or first.keys() != second.keys():
        print(f"not reproducible: {', '.join(different)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["wheel", "sdist"]))
