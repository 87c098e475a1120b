"""What the verbs of memory and learnings return."""

from typing import NotRequired, TypedDict


class TopicSummary(TypedDict):
    """A topic and the number of its lessons."""

    topic: str
    about: str
    lessons: int


class LessonFinding(TypedDict, total=False):
    """Lessons that need attention: one by its id, or two of them."""

    id: str
    body: str
    about: str
    lessons: list[str]
    bodies: list[str]


class MemoryFinding(TypedDict):
    """What is wrong with some lessons, and the command that helps."""

    kind: str
    count: int
    what: str
    do: str
    found: list[LessonFinding]


class SemanticSearchStatus(TypedDict):
    """The embedder in use, or why there is none."""

    embedder: str | None
    by_words_because: NotRequired[str]
    without_vector: NotRequired[int]


class MemoryHealth(SemanticSearchStatus):
    """How the memory is used, and what needs attention."""

    lessons: int
    recalls: int
    useful: int
    harmful: int
    useful_share: float | None
    stale: int
    stale_share: float | None
    consolidate: bool
    to_do: list[MemoryFinding]


class UnreadableLine(TypedDict):
    """A line that can't be read."""

    line: int
    problem: str


class LearningsImport(TypedDict):
    """How many learnings were added and known already, and the bad lines."""

    added: int
    known: int
    bad: list[UnreadableLine]
