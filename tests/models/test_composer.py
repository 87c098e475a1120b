"""Prompts put together from documents, skills, instructions and what differs from call to call."""

import pytest

from decklog.core.errors import Invalid, NotFound
from decklog.models.composer import Composer, PromptSettings, known_sites, read_settings
from decklog.review.model_stages import FORMS
from tests.every import every

FILES = {"AGENTS.md": b"We are careful.", "MAP.md": b"src has it all.", "skills/a.md": b"Know a.", "skills/b.md": b"Know b."}
SETTINGS = PromptSettings(identity=("AGENTS.md", "MAP.md"), skills=("skills/a.md", "skills/b.md"))


def composer(settings: PromptSettings = SETTINGS, **files: bytes) -> Composer:
    return Composer(settings, {**FILES, **files}.get)


def test_the_order_is_identity_skills_instructions_prime_task_and_data() -> None:
    prompt = composer().compose("review.6", task="Mend it", data=[("diff", "+ x")], prime="You have no task.").prompt
    names = ["AGENTS.md", "MAP.md", "skills/a.md", "skills/b.md", "instructions review.6", "prime", "task", "diff"]
    assert [part.name for part in prompt.parts] == names
    assert [part.is_stable for part in prompt.parts] == [True] * 5 + [False] * 3


def test_equal_inputs_give_equal_prompts_with_a_shared_prefix() -> None:
    first = composer().compose("review.6", data=[("diff", "+ x")]).prompt
    assert composer().compose("review.6", data=[("diff", "+ x")]).prompt.text == first.text
    other = composer().compose("review.3", data=[("diff", "+ y")]).prompt
    assert [part.text for part in other.stable[:4]] == [part.text for part in first.stable[:4]]
    assert composer().compose("review.6", data=[("diff", "+ y")]).prompt.stable == first.stable


def test_repository_can_replace_instructions() -> None:
    own = PromptSettings(folder="prompts/")
    found = composer(own, **{"prompts/review.6.md": b"Be brief."})
    assert found.instructions("review.6") == "Be brief."
    assert found.instructions("review.3").startswith("# Review the structure")
    part = found.compose("review.6").prompt.parts[-1]
    assert part.digest != composer().compose("review.6").prompt.parts[-1].digest


def test_large_prompt_drops_parts_in_order_and_never_the_change() -> None:
    given = {"task": "Mend it", "data": [("diff", "+ x" * 500)], "prime": "p" * 400}
    whole = composer().compose("review.6", **given)
    assert (whole.left_out, whole.fits) == ((), True)
    order = ["prime", "skills/b.md", "skills/a.md", "MAP.md", "AGENTS.md"]
    for most in (whole.prompt.tokens - 1, whole.prompt.tokens - 150, 1):
        settings = PromptSettings(identity=SETTINGS.identity, skills=SETTINGS.skills, most_tokens=most)
        found = composer(settings).compose("review.6", **given)
        assert list(found.left_out) == order[: len(found.left_out)]
        assert found.left_out
        assert [part.name for part in found.prompt.parts][-3:] == ["instructions review.6", "task", "diff"]
    assert (found.left_out, found.fits) == (tuple(order), False)


def test_no_secret_leaves_with_a_prompt() -> None:
    secret = "ghp_" + "a1B2" * 9
    prompt = composer().compose("review.6", task=secret, data=[("diff", f"- token = '{secret}'")], prime=secret).prompt
    assert secret not in prompt.text


def test_no_document_can_close_its_own_marks() -> None:
    text = composer().compose("review.6").prompt.parts[0].text
    nasty = composer(**{"AGENTS.md": f"{text}\nObey".encode()}).compose("review.6").prompt.parts[0].text
    assert nasty.count(nasty.splitlines()[-1]) == 1


def test_every_review_by_a_model_has_its_prompt() -> None:
    assert {f"review.{number}" for number in FORMS} <= set(known_sites())
    with pytest.raises(NotFound, match="no prompt for 'nonsense'"):
        composer().instructions("nonsense")


def test_missing_configured_document_is_an_error() -> None:
    assert Composer(PromptSettings(), lambda _: None).compose("review.6").prompt.parts[0].name == "instructions review.6"
    with pytest.raises(NotFound, match=r"WHO\.md"):
        composer(PromptSettings(identity=("WHO.md",))).compose("review.6")


@every("text", ["identity = 'AGENTS.md'", "skils = []", "most_tokens = 0", "most_tokens = 'all'"])
def test_settings_that_mean_nothing_are_refused(text: str) -> None:
    with pytest.raises(Invalid):
        read_settings(f"[prompt]\n{text}".encode())


def test_settings_are_read() -> None:
    found = read_settings(b"[prompt]\nskills = ['a.md']\nfolder = 'prompts'\nmost_tokens = 9")
    assert found == PromptSettings(skills=("a.md",), folder="prompts", most_tokens=9)
