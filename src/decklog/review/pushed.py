"""What a push publishes: its sources, and their commits and tags."""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from decklog.conductor.git.calls import call
from decklog.conductor.git.repository import Repository
from decklog.tools.policy import Publication

UNKNOWN = "\0"
_BRANCHES = ("--all", "--branches", "--mirror")
_DELETES = ("--delete", "-d")
# Options of a forge's program that name the branch to merge.
_HEADS = ("-H", "--head", "--source-branch")
_PUSH_SETTINGS = r"^(push\.default|remote\..*\.(push|mirror))$"


def sources_of(publication: Publication, repository: Repository, folder: Path) -> Sequence[str]:
    """Return the names of all that a command publishes."""
    if publication.program != "git":
        named = [value for option, value in publication.options if option in _HEADS]
        return [value.rpartition(":")[2] for value in named] or ["HEAD"]
    if publication.flags.intersection(_DELETES):
        return []
    return list(dict.fromkeys(_pushed(publication, repository, folder)))


def _pushed(publication: Publication, repository: Repository, folder: Path) -> Iterator[str]:
    flags = publication.flags
    if flags.intersection(_BRANCHES):
        yield from repository.refs("refs/heads")
    if flags.intersection(("--tags", "--mirror")):
        yield from repository.refs("refs/tags")
    has_remote = any(option == "--repo" for option, _ in publication.options)
    specs = [ref for ref in publication.operands[0 if has_remote else 1 :] if ref != "tag"]
    if specs:
        for spec in specs:
            yield from _sources_of_refspec(spec, repository)
    elif not flags.intersection((*_BRANCHES, "--tags")):
        yield from _usual_sources(publication, repository, folder)


def _sources_of_refspec(spec: str, repository: Repository) -> Iterator[str]:
    """Yield the sources of a refspec; `:` means every branch that the other side has too."""
    source, colon, target = spec.lstrip("+").partition(":")
    if colon and not source:
        # An empty source deletes; with an empty target it means all matching branches.
        yield from () if target else repository.refs("refs/heads")
    elif "*" in source:
        pattern = source if source.startswith("refs/") else f"refs/*/{source}"
        yield from (name for name in repository.refs("refs") if fnmatchcase(name, pattern))
    else:
        yield source


def _usual_sources(publication: Publication, repository: Repository, folder: Path) -> Iterator[str]:
    """Yield what a push without a refspec publishes: HEAD, and what the settings add."""
    yield "HEAD"
    # Settings of the remote or of the command line may name other refs.
    given = [value.partition("=")[::2] for option, value in publication.options if option == "-c"]
    words = ["config", "-z", "--get-regexp", _PUSH_SETTINGS]
    found = call(words, variables={"GIT_CONFIG_NOSYSTEM": "0"}, cwd=folder, accepted=(0, 1)).text
    for name, value in [*given, *(one.partition("\n")[::2] for one in found.split("\0") if one)]:
        key = name.lower()
        if (key == "push.default" and value == "matching") or (key.endswith(".mirror") and value != "false"):
            yield from repository.refs("refs/heads")
            yield from repository.refs("refs/tags") if key.endswith(".mirror") else ()
        elif key.startswith("remote.") and key.endswith(".push"):
            yield from _sources_of_refspec(value, repository)


def is_other_object(repository: Repository, source: str, folder: Path) -> bool:
    """Return whether a source is an object other than a commit, such as a tag of a file."""
    words = ["rev-parse", "--verify", "--quiet", "--end-of-options", source]
    is_there = call(words, variables={}, cwd=folder, accepted=(0, 1, 128)).code == 0
    return is_there and repository.resolve(source, cwd=folder) is None


def commits_between(repository: Repository, base: str, head: str) -> Sequence[str]:
    """Return the commits that a head has and its base does not, the newest first."""
    return repository.on_objects("rev-list", f"{base}..{head}").text.split()


def texts_of(repository: Repository, commits: Sequence[str], source: str) -> Iterator[tuple[str, str]]:
    """Yield the messages that are published with a source: those of its commits, and that of a tag."""
    for commit in commits:
        yield f"commit {commit[:12]}", repository.on_objects("log", "-1", "--format=%B", commit).out.decode(errors="replace")
    tag = source.removeprefix("refs/tags/")
    yield (
        f"tag {tag}",
        repository.on_refs("for-each-ref", "--format=%(contents)", f"refs/tags/{tag}").out.decode(errors="replace"),
    )
