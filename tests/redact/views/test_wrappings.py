"""Lines in what tools put around them: found as without it, and nothing but the secret goes."""

import json
import random
import re
import string
from types import SimpleNamespace

import pytest

from decklog.redact import engine, may_hold_secret, redact, scan_by_rules
from decklog.redact.batch import clean_among
from decklog.redact.view import looked_through
from decklog.redact.views import wrappings
from tests.redact.patterns.test_together import made_above, made_together, made_told

SECRET = "lantern" + "Wombat" + "323!"
_MARKER = re.compile(r"\[redacted:[\w-]+\]")
NETRC = f"machine mail.example.org\n  login ana\n  password {SECRET}"


def _each(text: str, before: str) -> str:
    return "\n".join(before.format(number) + line for number, line in enumerate(text.split("\n"), 97))


BEFORE = (
    "{:6}\t",
    "{:5}→",
    "{}: ",
    "{}:",
    "{:4} | ",
    "etc/site.conf:{}:",
    "./etc/site.conf-{}-",
    "C:\\site\\conf.txt:{}:",
    "> ",
    "+",
    "2026-03-04T05:06:07.123Z ",
    "2026-03-04 05:06:07,123 INFO ",
    "Mar  4 05:06:07 nas job[71]: ",
    "web-1  | ",
    "[05:06:07] ",
    "etc/netrc:",
)


@pytest.mark.parametrize("before", BEFORE)
def test_what_a_tool_puts_before_each_line_hides_nothing_and_stays(before: str) -> None:
    text = _each(NETRC, before)
    assert _MARKER.sub(SECRET, redact(text)) == text
    assert SECRET not in redact(text)
    as_json = json.dumps({"output": text})
    assert SECRET not in redact(as_json)
    assert json.loads(redact(as_json))["output"].count("\n") == 2
    assert SECRET not in redact(json.dumps({"said": as_json}))


@pytest.mark.parametrize("sign", "+-")
def test_both_sides_of_a_change_are_looked_at(sign: str) -> None:
    lines = NETRC.replace("\n", f"\n{sign}")
    shown = redact(f"@@ -1,3 +1,3 @@\n unchanged\n{sign}{lines}\n unchanged")
    assert SECRET not in shown
    assert shown.startswith(f"@@ -1,3 +1,3 @@\n unchanged\n{sign}machine mail.example.org\n")
    assert shown.endswith("\n unchanged")


def test_the_last_line_of_a_change_may_begin_with_a_file_and_a_number() -> None:
    text = f'@@ -1 +1 @@\n+src/app.py:12: password = "{SECRET}"\nits password = "{SECRET}"\nend'
    assert redact(text) == text.replace(SECRET, "[redacted:password]")


def test_a_string_of_json_has_lines_of_its_own() -> None:
    text = json.dumps({"role": "tool", "output": f"$ pass show team/mail\n{SECRET}", "code": 0})
    assert redact(text) == text.replace(SECRET, "[redacted:printed-secret]")
    table = json.dumps({"content": f"host\tuser\tpass\nmx1.example.org\tana\t{SECRET}"})
    assert redact(table) == table.replace(SECRET, "[redacted:listed-password]")


def test_a_word_in_bold_is_read_as_the_word() -> None:
    assert redact(f"Your new password: **{SECRET}** is set.") == "Your new password: **[redacted:password]** is set."


def test_numbers_that_are_secrets_are_still_found() -> None:
    assert "4826" not in redact("door pin: 4826\n1: door pin: 4826\n2: gate pin: 4826")


@pytest.mark.parametrize("before", BEFORE)
def test_what_stands_before_a_line_is_never_taken_for_the_secret(before: str) -> None:
    text = _each("step 3 of 9: login\nstep 4 of 9: rotate the token\nstep 5 of 9: verify", before)
    assert redact(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "one line",
        "def f(x):\n    return x ** 2 ** y",
        "key: value\nother: value",
        "12 apples\n30 pears",
        'print("a\\n")\nprint("b\\n")',
        "10:30 opened\n10:45 closed",
    ],
)
def test_most_texts_have_nothing_around_their_lines(text: str) -> None:
    assert wrappings.peeled(text, looked_through(text)) is None


def test_the_way_back_is_exact() -> None:
    text = "\n".join(["first", *(f"{number:5}→line {number}" for number in range(20)), *["far"] * 40, "> quoted", "last"])
    view = wrappings.peeled(text, looked_through(text))
    assert view is not None
    for number in range(20):
        place = view.text.index(f"line {number}")
        start, end = view.span(place, place + len(f"line {number}"))
        assert text[start:end] == f"line {number}"
        assert view.left_out_to(start - 1) == start
    assert view.text.count("far") < 20


def test_many_texts_at_once_are_judged_as_each_by_itself() -> None:
    texts = [_each(text, before) for text in (NETRC, "x = 1\ny = 2", "steps:\nlogin\nrotate") for before in BEFORE]
    texts += [text.split("\n")[0] for text in texts] + [f"/srv/conf/sasl:8:[mx.example.org]:587 ana:{SECRET}"]
    assert clean_among(texts) == {text for text in texts if not scan_by_rules(text)[1]}
    assert all(may_hold_secret(text) for text in texts if scan_by_rules(text)[1])


@pytest.mark.parametrize(
    "lines",
    [
        ("    - name: LD_SDK_KEY", '      value: "sdk-{}"'),
        ("  shop:dbPassword:", "    secure: false", "    value: {}"),
        ('expect "assword:"', 'send "{}"'),
    ],
)
@pytest.mark.parametrize("before", ["main.cfg:{}:", "> ", "{:6}\t"])
def test_what_goes_on_in_the_next_line_is_found_by_whatever_looks_for_signs(
    lines: tuple[str, ...], before: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "QVZ4Fc" + "!3ny7z"
    text = "\n".join(before.format(number) + line for number, line in enumerate(lines, 7)).replace("{}", secret)
    monkeypatch.setattr(engine, "ABOVE", made_above())
    monkeypatch.setattr(engine, "TOLD", made_told())
    for look in (None, made_together().look):
        monkeypatch.setattr(engine, "TOGETHER", SimpleNamespace(look=look, ask=lambda _texts=1, look=look: look))
        assert secret not in scan_by_rules(text)[0], look


def drawn(dice: random.Random, length: int) -> str:
    return "".join(dice.choice(string.ascii_letters + string.digits) for _ in range(length))


@pytest.mark.parametrize(
    "form",
    [
        "{}:12: hello world",
        "{0}:12:hello\n{0}:13:there",
        "{0}-12-hello\n{0}-13-there",
        "./{}:12:hello",
        "{0}: hello\n{0}: again",
        "{0} | hello\n{0} | more",
        "<{0}> hi\n<{0}> again",
    ],
)
def test_a_token_that_stands_where_the_name_of_a_file_or_a_speaker_would_is_found(form: str) -> None:
    dice = random.Random(4)
    signed = f"eyJ{drawn(dice, 20)}.eyJ{drawn(dice, 24)}.{drawn(dice, 43)}"
    tokens = ["gh" + "p_" + drawn(dice, 36), signed, "SG" + f".{drawn(dice, 22)}.{drawn(dice, 43)}", "npm_" + drawn(dice, 36)]
    for token in tokens:
        assert token[6:] not in scan_by_rules(form.format(token))[0], form


def test_the_dashes_of_a_key_in_a_change_are_no_signs_of_it() -> None:
    dice = random.Random(3)
    body = "\\n".join([drawn(dice, 64), drawn(dice, 64), drawn(dice, 36)])
    key = f"-----BEGIN EC PRIVATE KEY-----\\n{body}\\n-----END EC PRIVATE KEY-----\\n"
    for text in (f'@@ -41,0 +69,2 @@\n+JWT_KEY="{key}"\n+A=1', f'--- a/.env\n+++ b/.env\n@@ -4 +6,2 @@\n-K="{key}"\n+A=1'):
        redacted, _ = scan_by_rules(text)
        assert body[:64] not in redacted
        assert "[redacted:private-key]" in redacted
