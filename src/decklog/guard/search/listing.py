"""List the files beneath a root: all of a directory, or those that a glob names."""

import stat

from decklog.core.errors import Denied
from decklog.guard.files.access import Op
from decklog.guard.files.root import Root
from decklog.guard.search.globs import full_match, name_match
from decklog.guard.search.walk import walk


def list_files(
    root: Root,
    path: str = ".",
    pattern: str | None = None,
    recursive: bool = True,
    *,
    with_ignored: bool = False,
) -> list[str]:
    """List the files beneath a directory, sorted, as paths from the root.

    `pattern` is a glob for the name, or for the path from the root if it has a slash. What `.gitignore`
    lists is left out unless `with_ignored`; `.git` always is.
    """
    wanted = name_match(pattern)
    found = _files(root, path, recursive=recursive, with_ignored=with_ignored)
    return [file for file in found if wanted(file)]


def glob(root: Root, pattern: str, path: str = ".", *, with_ignored: bool = False) -> list[str]:
    """Find the files whose path from `path` matches a glob, sorted, as paths from the root.

    `*` stays within a directory and `**` crosses any number of them. Directories themselves are not given.
    """
    matches = full_match(pattern)
    start = root.place(path, Op.LIST).path
    skip = 0 if start == "." else len(start) + 1
    return [file for file in _files(root, path, with_ignored=with_ignored) if matches(file[skip:])]


def _files(root: Root, path: str, *, recursive: bool = True, with_ignored: bool = False) -> list[str]:
    walked = walk(root, path, recursive=recursive, with_ignored=with_ignored)
    return sorted([*walked.files, *(link for link in walked.links if _leads_to_file(root, link))])


def _leads_to_file(root: Root, link: str) -> bool:
    try:
        found = root.place(link, Op.READ).found
    except Denied:
        return False
    return found is not None and stat.S_ISREG(found.st_mode)
