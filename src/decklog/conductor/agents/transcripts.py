"""Transcripts that agent programs keep in their homes: the model of a session, and the tokens of its answers."""

import glob
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from decklog.agents.programs import program
from decklog.agents.programs.base import Reading, Sums, add
from decklog.agents.programs.claude import transcripts_below
from decklog.agents.transcripts import lines_of
from decklog.conductor.agents.stream import LONGEST_LINE, MOST_TOKENS, at, is_name

# Of a transcript, so much is searched for its model.
_LONGEST_SEARCHED = 8 * LONGEST_LINE


def model_in_transcript(home: Path, transcript: Mapping[str, str], session: str) -> str | None:
    """Return the first model that a session's transcript names; None if there is none."""
    for path in _files(home, transcript, session) if "model" in transcript else ():
        with path.open("rb") as file:
            for line in file.read(_LONGEST_SEARCHED).splitlines():
                model = at(_json(line), transcript["model"])
                if model and is_name(model):
                    return str(model)
    return None


def tokens_in_transcript(home: Path, transcript: Mapping[str, str], session: str) -> Sums:
    """Return the tokens of a session's answers by model, those of its sub-agents too; empty if no transcript can be read."""
    found: Sums = {}
    if "program" not in transcript:
        return found
    for path in _files(home, transcript, session):
        for one, agent_id in ((str(path), None), *transcripts_below(str(path))):
            for model, tokens in _tokens(transcript["program"], one, agent_id).items():
                add(found, model, [min(count, MOST_TOKENS) for count in tokens])
    return found


def _tokens(name: str, path: str, agent_id: str | None) -> Sums:
    reader = program(name).reader(Reading(path=path, agent_id=agent_id))
    for line, _ in lines_of(path):
        for _event in reader.events(line):
            pass
    for _event in reader.rest():
        pass
    return reader.answers


def _files(home: Path, transcript: Mapping[str, str], session: str) -> Iterator[Path]:
    pattern = transcript["file"].removeprefix("~/").replace("{session}", glob.escape(session))
    # An agent may write to its home.
    yield from (path for path in sorted(home.glob(pattern)) if path.is_file() and not path.is_symlink())


def _json(line: bytes) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
