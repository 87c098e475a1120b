"""Ask the model of a call site about untrusted data, with the prompts and models of one commit."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from decklog.log import Decklog
from decklog.models import settings as model_settings
from decklog.models.client import ModelAnswer, ModelCall, ModelClient
from decklog.models.composer import Composer, PromptSettings, Reader, read_settings
from decklog.models.provider import Provider
from decklog.models.providers.making import provider_factory
from decklog.models.settings import ModelChoice, ModelSettings

BuildProvider = Callable[[ModelChoice], Provider]


def _no_provider(choice: ModelChoice) -> Provider:
    raise AssertionError(f"no call site uses model {choice.name}")


@dataclass(frozen=True)
class ModelSetup:
    """The models that a commit configures, and the composer of their prompts. The default has none."""

    models: ModelSettings = field(default_factory=ModelSettings)
    composer: Composer = field(default_factory=lambda: Composer(PromptSettings(), lambda _: None))
    build: BuildProvider = _no_provider

    def has(self, site: str) -> bool:
        """Return whether a model is configured for a call site."""
        return self.models.choice_for(site) is not None

    def ask(
        self,
        log: Decklog,
        site: str,
        schema: Mapping[str, Any],
        data: Sequence[tuple[str, str]],
        *,
        run_id: str,
        task_id: str | None = None,
        temperature: float | None = None,
    ) -> ModelAnswer:
        """Ask about data in a run, which records and pays for the call. Data that is too large is not sent."""
        composed = self.composer.compose(site, data=data)
        prompt = composed.prompt
        if not composed.fits:
            size = f"about {prompt.tokens} of {composed.most_tokens} tokens"
            return ModelAnswer(site=site, prompt_digest=prompt.digest, why=f"the prompt is too large for the model: {size}")
        models = ModelClient(log, self.models, self.build, run_id=run_id, task_id=task_id)
        return models.ask(ModelCall(site=site, prompt=prompt, schema=schema, temperature=temperature))


def build_setup(
    log: Decklog,
    models: ModelSettings,
    prompt: PromptSettings,
    read: Reader,
    folder: Path,
    *,
    build: BuildProvider | None = None,
    **given: Any,
) -> ModelSetup:
    """Build the setup of a commit, whose files `read` returns. Agent programs run in `folder`."""
    return ModelSetup(models, Composer(prompt, read), build or provider_factory(log, models, folder, read=read, **given))


def read_setup(log: Decklog, read: Reader, folder: Path, *, build: BuildProvider | None = None) -> ModelSetup:
    """Build the setup that the `decklog.toml` of a commit describes."""
    content = read("decklog.toml") or b""
    return build_setup(log, model_settings.read(content), read_settings(content), read, folder, build=build)
