"""Texts of each kind that the rules find something in, drawn from the patterns of what finds them."""

import random
import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import Any

from decklog.redact import assignments, names, nearby, statements
from decklog.redact.rules.rule import Rule
from decklog.redact.rules.table import RULES
from decklog.redact.sentences import accounts, answers, comments, languages, next_lines
from decklog.redact.sentences.tellings import TELLINGS
from tests.redact.samples import sample

Draw = Callable[[random.Random], str]

# As people choose them and as programs make them; each is whole only here.
_VALUES_TEXT = """
    Sommer2024_! Tr0ub4dor_&3 kite-Marble-_47 x7Kq_2pLm b1ueHeron_88 9fXkQ2mLz7_Rt4Vw1 a3f9c2e17b4d8c6e_5f0a1b2c3d4e5f60 hunter_2
    482_913 4829_^1377 amber-lantern-_velvet-tiger correct^horse^battery_^staple^7 wDPRtJ5MsA8b_L3qYx9nK2vHc JBSWY3DPEH_PK3PXP
    otter!_Maple K4PZ-1XQM-_77AB plumHarbour_19 s3cr_3t zjB!HVXV_dRFWXAXn b747b2b6779e438a73fa_668ec0181b62b0a66f0d Grün!_Wald7
    Blåbær-_og-9Kz пиРог_77! 密码_Jy8HWb Übung_macht.Meister correct^horse_^battery^staple qwX_zRtPmLk Moon.River_#4021
    saddle.Walnut_1976? /Ab7k!x/_Qm2t+ $w0rd_Fish N8r{k}_2!pQ Harbor_!Lantern pa$$_Word Kestrel-_2291 tiger.lamp_.velvet.oak
    0x9f86d081884c7d65_9a2feaa0c55ad015 JBSWYDPE_HPKPXPAB qzxv^kftd_^mbtr^gjkl K7R2M-9QX4T_-B3VNW-P8HJC mfkq-_zxbw 739_204#
    swordfish_river QWXZ_RTPMLKV
"""
VALUES = tuple(value.replace("_", "").replace("^", " ") for value in _VALUES_TEXT.split())
_PLACES = ("db", "api", "smtp", "client", "admin", "wifi", "x", "user", "github", "aws", "encryption", "recovery", "door", "otp")
_LASTS = (
    *names._PASS_ENDS,
    *(
        "palavra_passe",
        "pass",
        "pwd",
        "pw",
        "psk",
        "senha",
        "passw",
        "pswd",
        "psw",
        "pword",
        "authtok",
        "heslo",
        "haslo",
        "parola",
    ),
    *("mdp", "bindpw", "rootpw", "secret", "secrets", "seed", "credential", "creds", "cred", "pepper", "token", "jwt", "bearer"),
    *("pat", "auth", "authorization", "apikey", "key", "keys", "salt", "wif", "sessid", "sessionid", "pin", "pincode", "code"),
    *("key_material", "secret_hash", "bind_credentials", "storageKey", "connect.sid", "x_session_id", "webtoken", "passe"),
)
_NAME = "\x02"
_STYLES: tuple[Callable[[str, str], str], ...] = (
    lambda place, last: f"{place}_{last}",
    lambda place, last: f"{place}_{last}".upper(),
    lambda place, last: f"{place}{last.title().replace('_', '')}",
    lambda place, last: f"{place}-{last}",
    lambda place, last: f"{place}.{last}",
    lambda place, last: f"{place}{last}",
    lambda _, last: last,
    lambda _, last: last.upper(),
    lambda _, last: last.title(),
    lambda place, last: f"{place}_{last}_{place}",
    lambda place, last: f"{last}{len(place)}",
)


def name(dice: random.Random) -> str:
    """Draw a name that announces a secret, in any style."""
    return dice.choice(_STYLES)(dice.choice(_PLACES), dice.choice(_LASTS))


def value(dice: random.Random) -> str:
    """Draw a value of any kind."""
    return dice.choice(VALUES)


def of_rule(rule: Rule) -> Draw:
    """Give what draws texts that a rule matches."""

    def draw(dice: random.Random) -> str:
        called = dice.choice(rule.before) if rule.before else ""
        return called + sample(rule.keep, dice) + sample(rule.pattern, dice) + sample(rule.until, dice)

    return draw


def of_telling(telling: Any) -> Draw:
    return lambda dice: sample(telling.opening, dice) + sample(telling.rest, dice, value(dice))


def _closed(head: str, dice: random.Random) -> str:
    """Put a value behind the head of an assignment, whose last character stands for it, and end it as it begins."""
    quote = head[-2:-1] if head[-2:-1] in ("'", '"', "`") else ""
    end = dice.choice(("", "", "", ",", ";", ")", "</", "]"))
    return head[:-1] + value(dice) + quote + end


_STEM_AROUND = re.compile(r"(?:\[[^\]]*\]\*\??)?" + re.escape(assignments._NAME_STEM) + r"(?:\[[^\]]*\]\*|\\w\*)?")
_NAMED_HEAD = _STEM_AROUND.sub(_NAME, assignments.SIGN)


def named(dice: random.Random) -> str:
    """Draw what a name gives away, tied to it in any way."""
    if dice.random() < 0.3:
        return _closed(sample(assignments.SIGN, dice), dice)
    return _closed(sample(_NAMED_HEAD, dice), dice).replace(_NAME, name(dice))


_STATEMENTS = (
    'N = os.environ.get("X", "V")',
    'N := getenv("X") or "V"',
    'ENV["N"] || "V"',
    "const N = process.env.X ?? 'V';",
    'String N = String.valueOf("V");',
    'N: Annotated[str, Field(default="V")]',
    'static N() { return "V"; }',
    'def N():\n    return "V"',
    'N = (\n    "V"\n)',
    '"N" to "V"',
    '("N", "V")',
    '{"N", "V"},',
    "val N by lazy { 'V' }",
    'N = {"prod": "V"}',
    'N = ["V", "V"]',
    'N.set("V")',
    'N("V")',
    'N.push_str("V")',
    'set_N("V")',
    "N VARCHAR(64) DEFAULT 'V'",
    'settings["N"]\n    .or("V")',
    'N: str | None = "V"',
    'strcpy(N, "V");',
    "N=$(echo 'V')",
    'N <- "V"',
    "my $N = q{V};",
    "N => 'V'",
    '#define N "V"',
    "N = <<EOF\nV\nEOF",
    'N = b64decode("V")',
    'mock("N", ["V"])',
)


def stated(dice: random.Random) -> str:
    """Draw a statement of a program, or what its signs allow."""
    if dice.random() < 0.4:
        return sample(statements.SIGN, dice).replace(_NAME, name(dice)) + f' "{value(dice)}"'
    return dice.choice(_STATEMENTS).replace("N", name(dice), 1).replace("V", value(dice))


_FILLERS = ("", " ", " is ", " for it ", ": ", " = ", " we took ", "(", ", ", " (", " -> ", "\n", " / ", " on db1 use ", "|")


def near(dice: random.Random) -> str:
    """Draw a value that could be nothing else near a word that has to do with secrets."""
    word = sample(dice.choice((nearby._WORDS, nearby._PASSWORDS, nearby._PLACES, nearby._KEYS, nearby._LEADING)), dice)
    quote = dice.choice(("", "", "'", '"', "`"))
    shown = f"{quote}{value(dice)}{quote}"
    between = dice.choice(_FILLERS)
    text = f"{word}{between}{shown}" if dice.random() < 0.6 else f"{shown}{between}{word}"
    return dice.choice(("{} there", "do {}", "{}", "root{}", "[{}]", "x({})")).format(text)


_LANGUAGES = tuple(
    pattern._source
    for pattern in (languages._TOLD, languages._PHRASE, languages._OF_HOST, languages._OF_NUMBERED, languages._SET_TO)
)
_WORDS = f"(?:{languages._WORD}|{languages._KEY_WORD})"
_TIES = f"(?:(?::|：|=| {languages._TIE})[ \t]*)"


def foreign(dice: random.Random) -> str:
    """Draw what is told in a language other than English."""
    if dice.random() < 0.5:
        return sample(dice.choice(_LANGUAGES), dice, value(dice))
    word = sample(_WORDS, dice)
    between = dice.choice(("", "", " ", " del server ", " für db1", " pour admin@example.org", "\n"))
    shown = dice.choice(("{}", "{}", '"{}"', "« {} »", "„{}“", "「{}」", "{}。", "{}です", "{}."))
    return dice.choice((word, word.title(), word.upper())) + between + sample(_TIES, dice) + shown.format(value(dice))


def listed(dice: random.Random) -> str:
    """Draw users with their passwords below a heading."""
    heading, user = dice.choice(((accounts._HEAD, accounts._USER), (accounts._SAID_HEAD, accounts._SAID_USER)))
    head = dice.choice((sample(heading._source, dice), "users:\n", f"{sample(accounts.HEADING, dice)}\n"))
    rows = [_user(user._source, dice) for _ in range(2)]
    return head + "".join(rows)


def _user(pattern: str, dice: random.Random) -> str:
    drawn = sample(pattern, dice)
    return re.sub(r"\S+(?=[\s,]*$)", lambda _: value(dice), drawn, count=1)


def commented(dice: random.Random) -> str:
    """Draw a value that is named behind it."""
    behind = sample(comments.SIGN, dice)
    if behind[0] in "\"'":
        return f"login(user, {behind[0]}{value(dice)}{behind}"
    return f"we took {value(dice)}{behind[1:]}"


_HEADS = ("name", "user", "host", "id", "email", "note", "role")


def below(dice: random.Random) -> str:
    """Draw what a line announces for the next one."""
    kind = dice.random()
    if kind < 0.35:
        return _table(dice)
    label = dice.choice((sample(next_lines.ANNOUNCING, dice), name(dice), sample(f"(?i){nearby._PASSWORDS}", dice)))
    if kind < 0.6:
        shown = dice.choice(("{}:", "the {} is", "{}=", "**{}:**", "{}", "These are:\n{}:")).format(label)
        return f"{shown}\n{dice.choice(('', '  ', '- ', '> ', '=> ', 'New value: '))}{value(dice)}"
    command = dice.choice(
        ("cat /run/{}", "$ {}", "vault read -field={} kv/x", "echo ${}", ">>> {}", "pass show {}/x", "$ {} prod/x")
    )
    return f"{command.format(label)}\n{value(dice)}"


def _table(dice: random.Random) -> str:
    separator = dice.choice((" | ", "\t", ",", ";", "   ", "|", " │ "))
    heads = [*dice.sample(_HEADS, 2), name(dice)]
    dice.shuffle(heads)
    rows = [[value(dice) if head not in _HEADS else dice.choice(("ana", "db1", "7")) for head in heads] for _ in range(2)]
    lines = [separator.join(row) for row in [heads, *rows]]
    if dice.random() < 0.4:
        lines.insert(1, "-" * 24 if separator != " | " else "---|---|---")
    if dice.random() < 0.2:
        given = "', '".join(rows[0])
        return f"INSERT INTO users ({', '.join(heads)}) VALUES ('{given}')"
    return "\n".join(lines)


_SPEAKERS = ("Ana: ", "<ana> ", "[09:20] Ana: ", "ana  09:12  ", "- Ana (ops): ", "user> ", "04.11.2023, 14:21 - Ana: ", "用户：")
_LEADS = ("", "it's ", "sure, it's ", "c'est le ", "es ", "是 ", "вот: ", "same as ever → ")


def answered(dice: random.Random) -> str:
    """Draw what answers a question for a password or a code."""
    who = dice.choice(_SPEAKERS)
    asked = f"{sample(f'(?:{answers._PASSWORDS}|{answers._CODES})', dice)} {sample(answers.ASKING, dice)}"
    answer = dice.choice((value(dice), "684647", "684 647", "copper lantern walks slowly"))
    return f"{who}{asked}\n{who}{dice.choice(_LEADS)}{answer}"


_FOREIGN_HEADS = (
    "Kennwort",
    "contraseña",
    "mot_de_passe_initial",
    "Пароль",
    "初始密码",
    "パスワード",
    "Wifi Key",
    "door_pin",
    "totp",
    "Türcode",
)


def tabled(dice: random.Random) -> str:
    """Draw tables of a wiki, a page and a sheet, and those whose heads are of other languages."""
    head, cell = dice.choice((*_FOREIGN_HEADS, name(dice))), dice.choice((value(dice), "684647", "JBSWY3DPEHPK3PXP"))
    table = dice.choice(
        (
            "Host,{},Note\nrelay,{},x",
            "| Host | {} |\n|---|---|\n| relay | {} |",
            "! Host !! {}\n|-\n| relay || {}",
            "<tr><th>Host</th><th>{}</th></tr>\n<tr><td>relay</td><td>{}</td></tr>",
            "A1=Host B1={}\nA2=relay B2={}",
            "|| Host || {} ||\n| relay | {} |",
        )
    )
    return table.format(head, cell)


def encoded(dice: random.Random) -> str:
    """Draw what only shows when base64 is undone."""
    inner = dice.choice((f"ana:{value(dice)}", f"{name(dice)}={value(dice)}", of_rule(dice.choice(RULES))(dice), named(dice)))
    blob = b64encode(inner.encode()).decode()
    return dice.choice(("{}", "data: {}", "got {} back", "Basic {}", "<{}>", "x={}")).format(blob)


KINDS: dict[str, Draw] = {
    "named": named,
    "stated": stated,
    "near": near,
    "foreign": foreign,
    "listed": listed,
    "commented": commented,
    "below": below,
    "answered": answered,
    "tabled": tabled,
    "encoded": encoded,
}


def each() -> Iterator[tuple[str, Draw]]:
    """Give what draws the texts of every rule, of every telling and of each other kind, by its name."""
    yield from ((f"rule {number} {rule.name}", of_rule(rule)) for number, rule in enumerate(RULES))
    yield from ((f"telling {number} {telling.opening[:40]}", of_telling(telling)) for number, telling in enumerate(TELLINGS))
    yield from KINDS.items()
