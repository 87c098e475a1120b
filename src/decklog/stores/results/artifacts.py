"""What the verbs of states, artifacts and outputs return."""

from typing import Literal, TypedDict


class StateDifference(TypedDict):
    """A difference between two versions of a state, at a JSON pointer."""

    path: str
    change: Literal["added", "removed", "changed"]
    before: object
    after: object


class RecordedIteration(TypedDict):
    """An iteration of an investigation, and what of it was written."""

    iteration: int
    status: str
    event_id: str
    event_saved: bool
    state_saved: bool
    version: int
    redacted: bool
    already: bool


class ArtifactContent(TypedDict):
    """The content of an artifact, as text or in base64."""

    id: str
    path: str | None
    media_type: str | None
    digest: str | None
    size: int
    encoding: Literal["utf-8", "base64"]
    content: str


class EvidenceCheck(TypedDict):
    """Which of the required skills gave an output lately."""

    complete: bool
    missing: list[str]
    found: list[str]
    mandatory: list[str]
    recency_window_minutes: int
