"""Freshly drawn batches: the name of a secret decides, whatever its value looks like, and nothing else is touched."""

import json
import random
from functools import cache
from types import ModuleType

import pytest

from decklog.redact import redact, scan_value
from tests.redact.batches import first, rounds, second, strangers, tuning
from tests.redact.batches.score import Score, disturbed, score
from tests.searches import FULL

# The same texts every time: another draw of them finds nothing that the day before did not.
SEEDS = (1, 2, 3) if FULL else (1,)
_LINES = ('DB_PASSWORD="{}"', "DB_PASSWORD={}", "password: '{}'", "db.password={}", '{{"password": "{}"}}')


@cache
def drawn(seed: int) -> Score:
    return score(tuning.secrets.cases(seed=seed, each=2 if FULL else 1))


@pytest.mark.parametrize("seed", SEEDS)
def test_secrets_of_every_shape_are_found_in_every_context(seed: int) -> None:
    result = drawn(seed)
    assert len(result.missed) <= result.size * 0.01, result.missed


@pytest.mark.parametrize("seed", SEEDS)
def test_what_stands_around_a_secret_is_kept(seed: int) -> None:
    result = drawn(seed)
    assert len(result.eaten) <= result.size * 0.002, result.eaten


@pytest.mark.parametrize("seed", SEEDS)
def test_look_alikes_drawn_afresh_stay_as_they_are(seed: int) -> None:
    size, changed = disturbed(tuning.harmless.texts(seed=seed))
    assert size > 400
    assert changed == []


@pytest.mark.parametrize("start", "!$%<{&*(@#^~+=?[")
@pytest.mark.parametrize(
    "line", ['DB_PASSWORD="{}"', "DB_PASSWORD={}", "password: '{}'", "db.password={}", '{{"password": "{}"}}']
)
def test_a_password_may_begin_with_any_sign(start: str, line: str) -> None:
    secret = start + "w0rd" + "Fish" + "77"
    shown = redact(line.format(secret) + "\nnext = 1")
    assert "Fish" not in shown
    assert shown.endswith("\nnext = 1")


@pytest.mark.parametrize("sign", "&*(;,|.#%")
def test_a_setting_with_a_line_of_its_own_is_redacted_to_its_end(sign: str) -> None:
    assert redact(f"ROOT_PWD=aB{sign}cD7{sign}eF\nMODE=fast") == "ROOT_PWD=[redacted:password]\nMODE=fast"


@pytest.mark.parametrize("sign", "#?/")
def test_a_password_in_an_address_may_hold_what_ends_a_host(sign: str) -> None:
    shown = redact(f"postgres://ana:a{sign}w0rd{sign}Fish@db:5432/shop?sslmode=require")
    assert shown == "postgres://ana:[redacted:url-password]@db:5432/shop?sslmode=require"


@pytest.mark.parametrize(
    "text",
    [
        "tokenMap = token_map\nnextValue2 = compute(tokenMap)",
        "    apiKey = api_key\n    baseURL2Path = base_url",
        "https://example.org:8080/users/@scope/pkg",
        "postgres://user:pass@localhost:5432/shop",
        "AKIA" + "IOSFODNN7EXAMPLE",
        'API_KEY=config.get("x")',
        "DB_PASSWORD=settings.DB_PASSWORD",
        "flask-sk-extension-for-2024-05-01-and-later",
    ],
)
def test_code_addresses_and_examples_are_left_alone(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("depth", range(3))
def test_a_quote_that_is_escaped_within_a_value_does_not_end_it(depth: int) -> None:
    text = json.dumps({"password": 'ab"cd' + "7!ef", "mode": 'a"b'})
    shown = json.dumps({"password": "[redacted:password]", "mode": 'a"b'})
    for _ in range(depth):
        text, shown = json.dumps({"log": text}), json.dumps({"log": shown})
    assert redact(text) == shown


def test_the_line_after_a_secret_is_never_part_of_it() -> None:
    secret = "aB3dE5fG7hI9" + "jK1lM3nO5pQ7"
    assert redact(f"app.client.secret={secret}\napp.mode=fast") == "app.client.secret=[redacted:secret]\napp.mode=fast"


@pytest.mark.parametrize("batch", [first, second], ids=["first", "second"])
def test_the_batches_for_measuring_are_large_enough_to_mean_something(batch: ModuleType) -> None:
    assert len({case.text for case in batch.secrets.cases()}) >= 2_500
    assert len(set(batch.harmless.texts())) >= 1_400


@pytest.mark.parametrize(
    ("batch", "least", "harmless"), [("third", 500, 1_200), ("fourth", 500, 1_200), ("fifth", 650, 1_250), ("sixth", 650, 1_300)]
)
def test_a_strangers_secrets_are_found_and_look_alikes_left_alone(batch: str, least: int, harmless: int) -> None:
    for seed in SEEDS:
        result = score(strangers.secrets(batch, seed))
        assert result.size > least
        assert result.missed == []
    size, changed = disturbed(strangers.harmless(batch))
    assert size > harmless
    assert changed == []


@pytest.mark.parametrize(
    "line",
    [
        "net use x: /user:ana {}",
        "net user ana {} /add",
        "bindpw {}",
        "rootpw --plaintext {}",
        "username ana privilege 15 secret 0 {}",
        "enable secret {}",
        "set ftp:password {}",
        "nmcli dev wifi connect home password {}",
        "rabbitmqctl add_user ana {}",
        "mosquitto_pub -u ana -P {} -t x",
        "account work\nuser ana\npassword {}",
        "TOKEN ?= {}",
        "AZURE_DEVOPS_EXT_PAT={}",
        "setx GITEA_TOKEN {}",
        "SECRET_KEY = env('SK', default='{}')",
        "  client-key-data: {}",
    ],
)
def test_a_password_may_follow_its_directive_after_a_blank(line: str) -> None:
    secret = "pebble" + "99.cobalt" + "As2"
    assert "pebble" not in redact(line.format(secret)) + redact(f"before\n{line.format(secret)}\nafter")


@pytest.mark.parametrize(
    "text",
    [
        "net user growth slowed",
        "the user forgot password again",
        "enable password rotation",
        "login with password authentication",
        "password must have 8 characters",
        "rootpw --lock",
        "password: ~",
        "password=@password@",
        "$token = bin2hex(random_bytes(16));",
        "SLACK_TOKEN=xoxb-xxxx-xxxx-xxxx",
        "main.example.org:12 warning:unused",
    ],
)
def test_sentences_about_passwords_and_what_stands_for_one_are_left_alone(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("shape", [name for name in tuning.secrets.SHAPES if "provider" not in name])
def test_a_key_decides_in_values_too(shape: str) -> None:
    dice = random.Random(shape)
    secrets = [tuning.secrets.SHAPES[shape](dice) for _ in range(40)]
    kept = [secret for secret in secrets if scan_value({"db_password": secret})[0] != {"db_password": "[redacted:password]"}]
    # A dollar sign and letters in the case of a name is a variable.
    assert [secret for secret in kept if secret[0] != "$"] == []
    assert len(kept) <= 2


@pytest.mark.parametrize("user", [r"dom\bob", r"corp\nancy", r"corp\tom", r"corp\\ruth", "ana"])
@pytest.mark.parametrize(
    "line",
    [
        "net use x: /user:{user} {secret}",
        r"net use \\srv\share /user:{user} {secret}",
        "net use x: /user:{user} {secret} /persistent:yes",
    ],
)
def test_a_backslash_in_the_name_of_a_user_is_no_escape(line: str, user: str) -> None:
    shown = redact(line.format(user=user, secret="pebble" + "99cobalt"))
    assert shown == line.format(user=user, secret="[redacted:command-password]")


def test_a_value_that_is_a_secret_once_is_one_wherever_the_text_has_it() -> None:
    secret = "pebble" + "99cobalt"
    shown = redact(f"kinit ana with {secret} # password={secret}\nagain {secret}, and pebbles")
    assert secret not in shown
    assert shown.endswith("again [redacted:password], and pebbles")


@pytest.mark.parametrize("batch", rounds.ROUNDS)
def test_the_secrets_of_our_own_rounds_are_found_and_look_alikes_left_alone(batch: str) -> None:
    for seed in SEEDS:
        assert score(rounds.secrets(batch, seed)).missed == []
    assert disturbed(rounds.harmless(batch))[1] == []
