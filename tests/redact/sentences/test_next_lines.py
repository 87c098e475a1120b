"""What a label, a command or the head of a column announces is a secret on the lines below."""

import pytest

from decklog.redact import redact

_SECRET = "otter" + "4lantern" + "Q7"


@pytest.mark.parametrize(
    "line",
    [
        "$ pass show work/vpn",
        "$ cat /run/secrets/db_password",
        "$ echo $PGPASSWORD",
        "root@db1:~# vault kv get -field=password secret/db",
        "$ kubectl get secret db -o jsonpath={.data.password} | base64 -d",
        "$ gcloud auth print-access-token",
        "$ terraform output -raw db_password",
        ">>> settings.SECRET_KEY",
        "Temporary password:",
        "The generated password is:",
        "password:",
    ],
)
def test_the_line_below_what_announces_a_secret_is_one(line: str) -> None:
    assert redact(f"{line}\n{_SECRET}\nnext line of it") == f"{line}\n[redacted:printed-secret]\nnext line of it"


@pytest.mark.parametrize(
    "table",
    [
        "user,password,role\neva,{},admin\nbob,,guest",
        "| user | password |\n|---|---|\n| eva | {} |",
        " id | login | password\n----+-------+----------\n  1 | eva   | {}\n(1 row)",
        "USERNAME   PASSWORD\neva        {}",
        "INSERT INTO users (name, password) VALUES ('eva', '{}');",
    ],
)
def test_the_cells_of_a_column_of_passwords_are_redacted_and_the_others_kept(table: str) -> None:
    shown = redact(table.format(_SECRET))
    assert shown == table.format("[redacted:listed-password]")


@pytest.mark.parametrize(
    "text",
    [
        "$ grep -c password app.log\n12",
        "$ kubectl get secret db -o name\nsecret/db-creds-v2",
        "$ which gopass\n/usr/local/bin/gopass",
        "$ vault token revoke -self\nSuccess!",
        "password:\n  type: string",
        "token:\n  secretKeyRef:\n    name: x1",
        "if token:\n    return x2",
        "| Model | Input tokens | Output tokens |\n|---|---|---|\n| small-2 | 1200 | 340k |",
        "name,token_count,cost\na,1200,0.5",
        "INSERT INTO users (name, password) VALUES (?, ?);",
    ],
)
def test_what_only_talks_about_secrets_announces_none(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    "value",
    ["[square]", ")close(ly", "]wrong[way", "/slash/ed", "'single'tick", "bra{ce}init", "비밀번호" + "abc"],
)
def test_a_quoted_password_may_look_like_a_placeholder_a_path_or_code(value: str) -> None:
    assert value not in redact(f'master_password: "{value}"')


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgres://shop:p@ss/w0{}#9@db.internal:5432/x", "postgres://shop:[redacted:url-password]@db.internal:5432/x"),
        ("Server=db;Password=Kx(9)=v{}!;Encrypt=True;", "Server=db;Password=[redacted:password];Encrypt=True;"),
        ("jdbc:mysql://db/x?user=a&password=L@m;p{}&ssl=no", "jdbc:mysql://db/x?user=a&password=[redacted:password]&ssl=no"),
    ],
)
def test_a_password_may_hold_the_sign_that_ends_it_elsewhere(text: str, shown: str) -> None:
    assert redact(text.format("rd7")) == shown
