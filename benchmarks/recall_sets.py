"""Sets for recall: texts, and questions with the texts that answer them.

    {"name": "…", "about": "…",
     "texts": [{"id": "…", "text": "…", "topic": "…", "project": "…"}, …],
     "questions": [{"text": "…", "answers": ["id", …], "part": "…", "project": "…"}, …]}

`topic`, `part` and `project` may be left out. A part is a share of the questions that is reported separately, such as those that
nobody looked at while the ranking was made. Questions of a project search only its own texts.
"""

import json
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).parent / "data"
OWN = ("recall_failures.json", "recall_practice.json", "recall_devices.json", "recall_strangers.json")


@dataclass(frozen=True)
class Text:
    id: str
    text: str
    topic: str = "failure_patterns"
    project: str | None = None


@dataclass(frozen=True)
class Question:
    text: str
    answers: tuple[str, ...]
    part: str = "all"
    project: str | None = None


@dataclass(frozen=True)
class RecallSet:
    name: str
    about: str
    texts: tuple[Text, ...]
    questions: tuple[Question, ...]

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(question.part for question in self.questions))

    def asked(self, part: str) -> tuple[Question, ...]:
        return tuple(question for question in self.questions if question.part == part)


def load(path: Path) -> RecallSet:
    """Read a set; refuse one that asks for texts it does not have."""
    data = json.loads(path.read_text(encoding="utf-8"))
    texts = tuple(Text(**text) for text in data["texts"])
    questions = tuple(Question(**{**asked, "answers": tuple(asked["answers"])}) for asked in data["questions"])
    known = {text.id for text in texts}
    if len(known) != len(texts):
        raise ValueError(f"{path}: two texts have the same id")
    if missing := {answer for question in questions for answer in question.answers} - known:
        raise ValueError(f"{path}: no text has the id {', '.join(sorted(missing))}")
    return RecallSet(data.get("name", path.stem), data.get("about", ""), texts, questions)


def own_sets() -> list[RecallSet]:
    """Read the sets that come with Decklog."""
    return [load(DATA / name) for name in OWN if (DATA / name).exists()]
