"""Secrets of several words, with brackets or quotes in them, told in passing or under a section; and their look-alikes."""

import pytest

from decklog.redact import redact, scan_value

_HERE = "⟦⟧"
# Put together here, so that no file holds one.
_PHRASES = ("plum 47 " + "Vx", "owl Rain " + "5 tiles", "gate9 " + "Kumquat!")
_WORDS = ("flax61!" + "Oak", "Tern+7" + "74kd", "kobo83" + "Nel")
_BRACKETED = ("{7kQm!" + "42rTz}", "ba31-Kp" + "90{Wu}", "<4gH!" + "uu72>", "{8fD%" + "rr21}")
_PRINTED = ("iM52aq" + "84Hl=j", "0704ac5c266493e2" + "30376174703cbdd7", "Vq81=" + "mm+47Tz")
_KEY = "ZHw119uEbnfSl6X1bFME" + "kLB3yC6iNAZgPfWFzhfb40XtTkeG"
_HEX = "9c31f02b7e554d10" + "a6b83ef2c4d71b09"
_SHORT = ("964471", "5827")


def _readable(lines: list[str], secrets: tuple[str, ...]) -> list[str]:
    """Give the texts of which some of the secret can still be read."""
    shown = [(redact(line.replace(_HERE, secret)), secret) for line in lines for secret in secrets]
    return [text for text, secret in shown if secret[:6] in text or secret[-5:] in text]


def _disturbed(texts: list[str]) -> list[str]:
    return [shown for text in texts if (shown := redact(text)) != text]


def test_a_quoted_password_of_several_words_goes_as_a_whole() -> None:
    lines = [
        'netsh wlan set profileparameter name=Home password "⟦⟧"',
        '192.168.4.1 %any : PSK "⟦⟧"',
        'the admin password is "⟦⟧"',
        'The wifi password at the cabin was "⟦⟧".',
        "passphrase of the backup key is '⟦⟧'",
        'enable secret "⟦⟧"',
        'sshpass -p "⟦⟧" ssh root@h',
        'nmcli con add type wifi ssid A password "⟦⟧"',
        'requirepass "⟦⟧"',
        '"client"\t*\t"⟦⟧"\t*',
        "Her login password was “⟦⟧”",
        'Password (wifi): "⟦⟧"',
        "$ pass show home/nas\n⟦⟧",
        "$ op read op://vault/db/password\n⟦⟧\n",
    ]
    assert _readable(lines, _PHRASES) == []


def test_a_word_with_a_number_and_a_sign_is_a_password_some_words_behind_the_word_for_one() -> None:
    lines = ["password of the day ⟦⟧", "lösenordet är fortfarande ⟦⟧", "Kennwort ist weiterhin ⟦⟧", "creds: deploy ⟦⟧", "(pw ⟦⟧)"]
    assert _readable(lines, _WORDS[:2]) == []


def test_a_setting_of_several_words_goes_to_the_end_of_its_line() -> None:
    lines = ["SESSION_SECRET=⟦⟧", "A=1\nDB_PASSWORD=⟦⟧\nB=2\n", "export WIFI_PSK=⟦⟧"]
    assert _readable(lines, ("reed Marsh 44" + " tin elk", "bolt 72 " + "Quill")) == []


def test_brackets_around_what_is_no_name_are_a_part_of_the_password() -> None:
    lines = ['password: "⟦⟧"', 'const dbPassword = "⟦⟧";', '{"password": "⟦⟧"}', "ansible_password: '⟦⟧'", 'DB_PASSWORD="⟦⟧"']
    assert _readable(lines, _BRACKETED) == []


def test_a_password_told_in_passing_is_found() -> None:
    lines = [
        "His password, ⟦⟧, expired on Monday.",
        "your password (⟦⟧) expires today",
        "Tried password ⟦⟧ over ssh and it worked",
        "password ⟦⟧ was rejected",
        "ci, pass ⟦⟧",
        "la password di produzione è ⟦⟧",
        "le mot de passe pour le wifi c'est ⟦⟧",
        "la contraseña para el servidor era ⟦⟧",
        "das Passwort für die Datenbank ist ⟦⟧",
        "das Admin-Passwort ist jetzt ⟦⟧",
        "passordet til basen er ⟦⟧",
        "el password de produccion es ⟦⟧",
        "a senha do banco é ⟦⟧",
        "rotated the db password from something1x to ⟦⟧",
        "the password (it was ⟦⟧) leaked",
        "sudo password ⟦⟧ accepted",
        "login bob pw ⟦⟧",
    ]
    assert _readable(lines, _WORDS) == []


def test_a_key_told_for_something_is_found_and_a_digest_is_not() -> None:
    lines = [
        "the secret for the hook is ⟦⟧",
        "client secret (prod): ⟦⟧",
        "app secret [live]: ⟦⟧",
        "shared secret is now ⟦⟧",
        "our token with them is ⟦⟧",
    ]
    assert _readable(lines, (_HEX, _KEY)) == []
    assert _disturbed([f"the checksum for the file is {_HEX}", f"md5 of the secret file is {_HEX}"]) == []


def test_a_pin_is_told_by_what_is_done_with_it_and_that_of_a_wire_is_none() -> None:
    lines = [
        "I set PIN ⟦⟧ as the gate's code",
        "use PIN ⟦⟧ for the door",
        "PIN ⟦⟧ opens the locker",
        "the card's PIN ⟦⟧ still works",
    ]
    assert _readable(lines, _SHORT) == []
    assert _disturbed(["GPIO PIN 5827 is high", "connect PIN 4096 to ground", "I set PIN length 6 as default"]) == []


def test_what_stands_below_its_announcement_is_found_behind_the_prefix_of_a_log() -> None:
    lines = [
        "$ kubectl get secret x -o jsonpath='{.data.password}' | base64 -d\n⟦⟧",
        "web-1  | Please use the following password to proceed:\nweb-1  | ⟦⟧",
        "db | Your root password is:\ndb | \ndb | ⟦⟧",
        "[pod/x/c] The password is:\n[pod/x/c] ⟦⟧",
    ]
    assert _readable(lines, _PRINTED) == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("API_TOKEN='aB91\"kk'\\''" + "r77Zq'", "API_TOKEN='[redacted:token]'"),
        ('user "etl" pass "kT04bb' + '91Zu\\\\pq"', 'user "etl" pass "[redacted:password]"'),
    ],
)
def test_a_value_goes_whole_whatever_quotes_it_holds(text: str, shown: str) -> None:
    assert redact(text) == shown


def test_options_and_sections_name_a_secret_in_any_program() -> None:
    lines = [
        "keytool -importkeystore -srcstorepass ⟦⟧ -srckeystore a.jks",
        "mqtt --brokerpass ⟦⟧ -t a",
        "wg set wg0 peer x preshared-key <(echo ⟦⟧)",
        '{"Jwt":{"Issuer":"f","Key":"⟦⟧"}}',
        "jwt:\n  issuer: x\n  key: ⟦⟧\n",
        '[jwt]\nissuer = "x"\nkey = "⟦⟧"\n',
        'BUNDLE_GEMS__FJORD__IO: "ci:⟦⟧"',
    ]
    assert _readable(lines, (_KEY,)) == []
    assert _readable(["GET /v1/weather?q=Oslo&appid=⟦⟧ HTTP/1.1"], (_HEX,)) == []
    assert (
        _readable(
            ['encrypt = "⟦⟧"  # gossip', "consul agent -encrypt=⟦⟧"], ("ip2TBvftf7x4rbqd3AJ7+gLR" + "I9DLLhPT/AJ9AEfKACl=",)
        )
        == []
    )
    assert scan_value({"Jwt": {"Issuer": "f", "Key": _KEY}})[1]
    assert not scan_value({"Cache": {"Key": "user:42"}, "Jwt": {"Key": "${JWT_KEY}"}})[1]


def test_algorithms_labels_sentences_and_stand_ins_are_left_alone() -> None:
    texts = [
        "Rotate password hashing to argon2",
        "change password storage to SHA3-256",
        '"passphrase": "Kennwortsatz",',
        '"wifi_password": "WLAN-Passwort",',
        "error.password=Le mot de passe est obligatoire",
        "form.password=Das Passwort ist zu kurz",
        'Environment="DB_PASSWORD=%d/pgpass"',
        "SECRET_KEY=replace-with-a-long-random-string",
        "JWT_SECRET=super-secret-change-in-prod",
        "SECRET_KEY=use-a-random-value",
        'password "must have 8 characters"',
        'the passphrase is "required since version 2"',
        "SECRET=x npm run build",
        'password = "user2-{id}"',
        "password: 3 attempts left",
        "Mot de passe : au moins 8 caractères",
        "Passwort: siehe Seite 2 im Wiki",
        "changed password from md5 to sha256",
        "PASS: test_a 2 ok",
        'password = "{pw1:>10}"',
        "$ pass show home/nas\nError: home/nas is not in the password store.",
        "--bypass fast1",
        'encrypt = "aes-256"',
        "appid=730",
        'BUNDLE_WITHOUT: "development:test"',
        "wg set wg0 private-key <(wg genkey)",
    ]
    assert _disturbed(texts) == []


@pytest.mark.parametrize("beginning", ["xns", "uploads", "a", "Kq7", "data/raw"])
def test_a_key_of_amazons_is_no_place_whatever_stands_before_its_first_slash(beginning: str) -> None:
    rest = "lOEJsoL6AleGlbLX+vElG0n" + "Yrqef1TxCrCgnQw8Kd3"
    key = f"{beginning}/{rest}"[:40]
    assert redact(f"AWS_SECRET_ACCESS_KEY={key}") == "AWS_SECRET_ACCESS_KEY=[redacted:api-key]"
