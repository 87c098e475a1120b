"""Values behind a sign: in lines that a change takes away, in fields for codes, and in the next line."""

import pytest

from decklog.redact import scan
from decklog.redact.patterns.prefilter import may_hold_secret

VALUE = "S3cret" + "Hunter2x"
TOKEN = "tv7zr1tLrH9Km3nT" + "tUnJJpz85sbCjgmEurD38HSL"
GIVEN = {
    "-password = {}": VALUE,
    "-db_password = {}\n+db_password = os.environ['DB_PASSWORD']": VALUE,
    "\x1b[31m-password := {}\x1b[m": VALUE,
    "deploy -password {}": VALUE,
    "deploy --password :{}": VALUE,
    "DB_PASSWORD={}": "PASSWORD" + "_2024",
    '{{"msg": "otp sent", "otp_code": "{}"}}': "855" + "059",
    '{{"totp": {}}}': "855" + "059",
    "rabbitmq:\n  erlangCookie: {}": "PJIHLAOUHD" + "YYWGSZSZSY",
    'curl https://example.org/v1 \\\n  -H "Authorization: Bearer \\\n{}"': TOKEN,
}
HARMLESS = (
    "-password = old_account\n+password = new_account",
    "\x1b[31m-password = old_account\x1b[m\n\x1b[32m+password = new_account\x1b[m",
    "password_hash($password, PASSWORD_ARGON2ID, ['time_cost' => 15]);",
    '{"otp_length": "6", "otp_code": "required"}',
)


@pytest.mark.parametrize("text", GIVEN)
def test_what_is_given_is_replaced_alone(text: str) -> None:
    said = text.format(GIVEN[text])
    before, after = text.replace("{{", "{").replace("}}", "}").split("{}")
    redacted, changed = scan(said)
    assert changed
    assert may_hold_secret(said)
    assert redacted.startswith(before)
    assert redacted.endswith(after)
    assert GIVEN[text] not in redacted


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_none_stays(text: str) -> None:
    assert scan(text) == (text, False)
