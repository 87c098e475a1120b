"""Asks the model of a call site about data that others wrote, with the prompts and the models that one commit names."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from decklog.log import Decklog
from decklog.models import settings as model_settings
from decklog.models.client import ModelAnswer, ModelCall, Models
from decklog.models.composer import Composer, PromptSettings, Reader, read_settings
from decklog.models.provider import Provider
from decklog.models.providers.making import maker
from decklog.models.settings import ModelChoice, ModelSettings

Data = Sequence[tuple[str, str]]


def ask_about(
    models: Models, composer: Composer, site: str, schema: Mapping[str, Any], data: Data, *, temperature: float | None = None
) -> ModelAnswer:
    """Ask the model of a call site about data; what does not fit into a prompt is not shown to it at all."""
    composed = composer.compose(site, data=data)
    if composed.fits:
        return models.ask(ModelCall(site=site, prompt=composed.prompt, schema=schema, temperature=temperature))
    size = f"about {composed.prompt.tokens} of {composed.most_tokens} tokens"
    return ModelAnswer(site=site, prompt_digest=composed.prompt.digest, why=f"this is too large to be shown to a model: {size}")


@dataclass(frozen=True)
class Voices:
    """The models that a commit names, and the composer of their prompts."""

    models: ModelSettings
    prompt: PromptSettings
    read: Reader
    make: Callable[[ModelChoice], Provider]

    def has(self, site: str) -> bool:
        """Return whether a model is configured for a call site."""
        return self.models.choice_for(site) is not None

    def ask(
        self,
        log: Decklog,
        site: str,
        schema: Mapping[str, Any],
        data: Data,
        *,
        run_id: str,
        task_id: str | None = None,
        temperature: float | None = None,
    ) -> ModelAnswer:
        """Ask in a run, which pays and keeps what was said."""
        models = Models(log, self.models, self.make, run_id=run_id, task_id=task_id)
        return ask_about(models, Composer(self.prompt, self.read), site, schema, data, temperature=temperature)


def voices_of(log: Decklog, read: Reader, folder: Path, *, make: Callable[[ModelChoice], Provider] | None = None) -> Voices:
    """Read who answers from the `decklog.toml` that `read` gives; programs run beneath `folder`."""
    content = read("decklog.toml") or b""
    models = model_settings.read(content)
    return Voices(models, read_settings(content), read, make or maker(log, models, folder, read=read))


def nobody() -> Voices:
    """Return what there is where no repository names a model."""
    from decklog.models.settings import ModelSettings

    def refuse(_: ModelChoice) -> Provider:
        raise AssertionError("a model that nobody named is not made")

    return Voices(ModelSettings(), PromptSettings(), lambda _: None, refuse)
