"""A model for tests: what it answers depends on the whole conversation, and on nothing that was asked before."""

import json
from collections.abc import Callable, Mapping

from decklog.core.errors import Invalid
from decklog.models.prompt import Prompt
from decklog.models.provider import ModelReply, ModelRequest

Script = Callable[[Prompt], "str | ModelReply"]


class Scripted:
    """Answers by a script. The figures are those of the text, so that the same conversation always costs the same."""

    def __init__(self, script: Script, *, model: str = "scripted") -> None:
        self._script = script
        self._model = model

    @classmethod
    def by_digest(cls, answers: Mapping[str, str], *, model: str = "scripted") -> "Scripted":
        """Replay recorded conversations, each found by its digest; one that was never recorded is an error that names it."""

        def script(prompt: Prompt) -> "str | ModelReply":
            if prompt.digest in answers:
                return answers[prompt.digest]
            return ModelReply(error_class="unscripted", error=f"the script has no conversation {prompt.digest}")

        return cls(script, model=model)

    @classmethod
    def from_json(cls, content: bytes | None, name: str, *, model: str = "scripted") -> "Scripted":
        """Read recorded conversations: a JSON object of digests and answers."""
        try:
            answers = json.loads(content or b"null")
        except ValueError as problem:
            raise Invalid(f"the script {name} is not JSON: {problem}", field="script") from problem
        if not isinstance(answers, dict) or not all(isinstance(text, str) for text in answers.values()):
            raise Invalid(f"the script {name} is no object of digests and answers", field="script")
        return cls.by_digest(answers, model=model)

    def reply(self, prompt: Prompt, wish: ModelRequest) -> ModelReply:  # noqa: ARG002
        said = self._script(prompt)
        if isinstance(said, ModelReply):
            return said
        usage = {"input_tokens": prompt.tokens, "output_tokens": max(1, len(said) // 4)}
        return ModelReply(text=said, model=self._model, usage=usage)
