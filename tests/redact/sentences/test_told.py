"""Secrets that people tell each other, in any language, and what only looks like telling one."""

from pathlib import Path

import pytest

from decklog.redact import redact, scan_value

_HERE = "⟦⟧"
# Each place is filled with passwords that are put together here, so that no file holds one.
_MIXED = ("Kaktus" + "9Morze", "gr4f4" + "n4Rocks", "apple-" + "cart-77", "Summer" + "2025!", "Green." + "Frog5")


@pytest.mark.parametrize(
    "line",
    [
        "hasło: ⟦⟧",
        "hasło do bazy to ⟦⟧",
        "La contraseña del servidor es ⟦⟧",
        "le mot de passe est ⟦⟧",
        "Das Passwort lautet ⟦⟧",
        "a senha é ⟦⟧",
        "het wachtwoord is ⟦⟧",
        "lösenordet är ⟦⟧",
        "parola d'ordine: ⟦⟧",
        "le mdp est ⟦⟧",
        "la clave es ⟦⟧",
        "PW ist ⟦⟧",
        "password - ⟦⟧",
        "password (staging): ⟦⟧",
        "password: !!str ⟦⟧",
        "security add-generic-password -a bob -w ⟦⟧",
        'echo "⟦⟧" | chpasswd',
        "şifre: ⟦⟧",
        "Пароль от базы: ⟦⟧",
        "пароль — ⟦⟧",
        "密码：⟦⟧",
        "密码是 ⟦⟧",
        "パスワードは ⟦⟧ です",
        "비밀번호는 ⟦⟧ 입니다",
        "Log in with admin / ⟦⟧ on the test box",
        "log in as root with ⟦⟧",
        "use admin/⟦⟧ to get into the dashboard",
        "the creds are bob / ⟦⟧",
        "I changed the db password to ⟦⟧ yesterday",
        "new db password, as agreed on the phone: ⟦⟧",
        "the password for the vpn (see ticket) is ⟦⟧",
        "password → ⟦⟧",
        "unlock code ⟦⟧ for the keystore",
        'login(user, "⟦⟧")  # password',
        'client.auth("bob", "⟦⟧")',
        "MYSQL_ROOT_PASSWORD: ⟦⟧",
        'mail:\n  password: "⟦⟧"',
        "<auth-user-pass>\nbob\n⟦⟧\n</auth-user-pass>",
        "<password><![CDATA[⟦⟧]]></password>",
    ],
)
def test_a_password_that_is_told_is_found_in_any_language(line: str) -> None:
    shown = [redact(line.replace(_HERE, secret)) for secret in _MIXED]
    assert [text for text, secret in zip(shown, _MIXED, strict=True) if secret[:6] in text or secret[-5:] in text] == []


# Here the sentence says so plainly that the name of a thing in a program can be one too.
_PLAIN = (*_MIXED, "Chunky" + "Bacon3", "Moonlight_" + "Drive9")


@pytest.mark.parametrize(
    "line",
    [
        "credentials are bob:⟦⟧",
        "The credentials are admin:⟦⟧ for staging",
        "creds: svc-app:⟦⟧",
        "password's ⟦⟧ btw",
        "the root password's ⟦⟧, write it down",
        "I typed ⟦⟧ as the password and it worked",
        "I used ⟦⟧ as the password for now",
        "we set ⟦⟧ as the root password",
        "type `⟦⟧` as your passphrase.",
        "the password you asked for is ⟦⟧",
        "The password we agreed on is ⟦⟧.",
        "the password I gave you was ⟦⟧",
        "FYI the shared account password changed from yesterday, now it is ⟦⟧",
        "the password changed, it's now ⟦⟧",
        "password was rotated today and is now ⟦⟧",
        "the password has changed. New one: ⟦⟧",
        "email ops@corp.example, password ⟦⟧",
        "> what is the login?\n< email ops@corp.example, password ⟦⟧",
        "log in as bob, password ⟦⟧",
        "user=bob, pass ⟦⟧",
        "пароль: ⟦⟧",
        "数据库密码为⟦⟧",
        "mật khẩu là ⟦⟧",
        "--password-command 'echo ⟦⟧'",
        'export BORG_PASSCOMMAND="echo ⟦⟧"',
        "ncftpput -u web -p ⟦⟧ host / f",
        "app.use(cookieParser('⟦⟧'))",
        "cookieSession({ keys: ['⟦⟧'] })",
        'resource "random_password" "x" { result = "⟦⟧" }',
        'resource "random_password" "x" {\n  length = 16\n  result = "⟦⟧"\n}',
        'api_password = """\n⟦⟧\n"""',
        "export DB_PASSWORD=\\\n    ⟦⟧",
    ],
)
def test_a_password_that_is_plainly_told_or_given_is_found_whatever_it_looks_like(line: str) -> None:
    shown = [redact(line.replace(_HERE, secret)) for secret in _PLAIN]
    assert [text for text, secret in zip(shown, _PLAIN, strict=True) if secret[:6] in text or secret[-5:] in text] == []


@pytest.mark.parametrize(
    ("line", "secret"),
    [
        ("root / ⟦⟧", "toor" + "99toor"),
        ("admin:⟦⟧", "Winter" + "2024!"),
        ("pwd for the vpn: ⟦⟧ (do not share)", "Qu1et." + "R1ver"),
        ("The API key you asked for is ⟦⟧", "VIifYeUA7JDLDWbq" + "jYyDfldOjrj3cr0e"),
        ("here's the key: ⟦⟧", "k3f9a8D7c6" + "b5e4f3a2b1"),
        ("token -> ⟦⟧", "k3f9a8D7c6" + "b5e4f3a2b1"),
        ("backup codes: ⟦⟧", "4829" + "-1377"),
        ("api key from yesterday: ⟦⟧", "k3f9a8D7c6" + "b5e4f3a2b1"),
        ('ssh in as deploy, passphrase "⟦⟧"', "seven lazy " + "otters swim north"),
        ("Enter passphrase for key: ⟦⟧", "my dog eats " + "green shoes"),
        ("Enter passphrase for key '/srv/id': ⟦⟧", "my dog eats " + "green shoes"),
        ("пароль: ⟦⟧", "Белка-" + "9-орех"),
        ("пароль от базы — ⟦⟧", "Сокол" + "77"),
        ("κωδικός: ⟦⟧", "Θάλασσα" + "77"),
        ("密码是 ⟦⟧", "Panda2024" + "@beijing"),
        ("密码：⟦⟧", "熊猫2024" + "北京"),
        ("パスワードは⟦⟧です", "さくら" + "2024!"),
        ("비밀번호: ⟦⟧", "호랑이" + "2024!"),
        ("redis_password ⟦⟧", '"quote"' + "4Yo"),
        ("[server-login]\nusername: bob\npassword: ⟦⟧", "Vq7." + "lopp!"),
        ("password = ⟦⟧", "ab.cd!" + "ef7"),
        ("smtp_password: ⟦⟧", "foo[3]" + "bar!"),
        ("secret: ⟦⟧", "Kz.7qq-" + "lo9!"),
        ("wif = ⟦⟧", "5hXQwWAEM2pQ5fZSke2xfKbhp" + "vshyRc1ARAPKomsPKWqvayLFf46"),
        ("hd root ⟦⟧", "xp" + "rv9s21Zr" + "QH143Klx0I" * 11),
        ("rejected credential ⟦⟧ for tenant 12", "IQoJb3Jp" + "Z2luX2/VjZH8+" * 30),
    ],
)
def test_the_whole_of_a_told_secret_goes_and_nothing_else(line: str, secret: str) -> None:
    before, _, after = line.partition(_HERE)
    shown = redact(line.replace(_HERE, secret))
    assert shown.startswith(f"{before}[redacted:")
    assert shown.endswith(f"]{after}")
    assert shown.count("[redacted:") == 1


@pytest.mark.parametrize(
    "text",
    [
        "the PIN is " + "73" + "91",
        "door code: " + "82" + "64#",
        "your verification code is " + "482" + "915",
        "secret answer: " + "fluffy the " + "third",
        "wifi pw = " + "maple syrup on " + "toast 9",
        'password="' + "a b " + 'c 9!"',
        "I set the root password to " + "correct horse " + "battery staple for now",
        "erl -setcookie " + "XKWQPZ" + "LMRTVNSB",
        'curl -b "JSESSIONID=' + "BnrUn853epq" + 'ozPCJan8v" http://intranet/',
        "curl --cookie 'sid=" + "q8d7a6s5d4" + "f3g2h1j0k9' http://intranet/",
        "raise AuthError('rejected credential " + "00c8rjIgO4X_NpD" + "_gsf7_zY5Go7')",
    ],
)
def test_codes_answers_phrases_and_cookies_are_found(text: str) -> None:
    assert "[redacted:" in redact(text)


@pytest.mark.parametrize(
    "value", ["{curly}" + "Jx8", "<angle" + "9K>", "/slash" + "9Way", "dot.ted" + ".Pw9", "(paren)" + "Zed7", "{x}" + "9"]
)
@pytest.mark.parametrize("line", ["DB_PASSWORD: {}", "ldap.bind.password = {}", 'password="{}"', "passwd: {}", "smtp_pass = {}"])
def test_a_password_may_look_like_a_placeholder_a_path_or_an_attribute(line: str, value: str) -> None:
    assert value not in redact(line.replace("{}", value))


@pytest.mark.parametrize("secret", ["{brace}" + "99", "<Kq93>" + "zz", "x%40y%2F" + "z9J6gbW", "`tick8" + "Tock"])
def test_a_password_in_an_address_may_have_brackets_and_escapes(secret: str) -> None:
    assert redact(f"smtp://noreply:{secret}@smtp.corp.lan:587/x") == "smtp://noreply:[redacted:url-password]@smtp.corp.lan:587/x"


_HARMLESS = """
La contraseña es incorrecta
Le mot de passe est trop court.
Passwort: erforderlich
Das Passwort ist zu kurz (mindestens 8 Zeichen)
Пароль должен содержать 8 символов
密码长度至少8位
パスワードは8文字以上です
비밀번호는 8자 이상이어야 합니다
Log in with Google / GitHub
log in with username/password
sign in with OAuth2/OIDC to continue
use admin/config2 for the settings
use admin/api/v2 to list users
the creds are in 1Password
I set the password to expire in 90 days
set the password to be at least 12 characters
changed the password to use argon2id
new password, please see section 4.2: rotation
password for root@localhost:
password: /run/secrets/db_password
MYSQL_ROOT_PASSWORD: <your-password>
MYSQL_PASSWORD: <PASSWORD_1>
DB_PASSWORD: settings.database.password
password: {type: string}
password: {min: 8}
password = f"{name}123"
postgres://<user>:<password>@<host>/db
see http://localhost:8000/<path>@2x.png
http://a.lan:80 <bob@corp.lan>
curl -b cookies.txt -c cookies.txt http://x.lan/
git checkout -b feature=1
JSESSIONID=deleted
session_id=12345
erl -setcookie mycookie -name a@b
https://github.com/acme/repo/settings/hooks/12345678
src/hooks/useAuthenticatedUserSession.ts
secret answer: required
security answer: string
the PIN is 4 digits long
GPIO pin: 17
pin: 1024
status code is 404
recovery codes: 10
rejected credential AccessKeyCredentialProvider for tenant 12
bad token 'else' in request
test("login2 works")  # password
i18n.t("auth.v2.title")  # password
db.connect('localhost', 'test_db2')
password: see ticket 4821
map password -> pw2
"""


def test_talk_about_passwords_is_left_alone() -> None:
    texts = _HARMLESS.strip().splitlines()
    assert [text for text in texts if redact(text) != text] == []


@pytest.mark.parametrize("file", ["benign_talk.txt", "benign_code.txt"])
@pytest.mark.parametrize("form", ["{}", "first line\n{}\nlast line"])
def test_sentences_templates_types_masks_and_labels_are_left_alone(file: str, form: str) -> None:
    texts = [form.replace("{}", line) for line in (Path(__file__).parent.parent / file).read_text(encoding="utf-8").splitlines()]
    assert len(texts) > 200
    assert [text for text in texts if redact(text) != text] == []


def test_a_label_of_a_translation_is_left_alone_and_a_value_of_the_environment_is_not() -> None:
    labels = {"secret": "Geheimnis", "token": "Jeton"}
    assert scan_value(labels) == (labels, False)
    assert redact('SECRET="Geheimnis"') == 'SECRET="[redacted:secret]"'


@pytest.mark.parametrize("line", ["AWS keys are {} and {}", "the pair is `{}` with `{}`", "use {} und {} dafür"])
def test_the_second_of_two_keys_that_a_sentence_tells_is_found_too(line: str) -> None:
    secret = "KUCHWEBpkcST/6TiSauTO" + "WQTxKsSQQ8RBoFxvNMI"
    assert secret[:8] not in redact(line.format("AKIA" + "Q7RT5WXYZ2" + "ABCDEF", secret))
