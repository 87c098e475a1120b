"""The words of which one stands in whatever is found, gathered from the rules, the names and the sentences of all languages."""

from collections.abc import Iterable

from decklog.redact.rules.rule import Rule
from decklog.redact.rules.table import AS_WRITTEN, PLACED, TOOLS

# Part of any text: where a rule has one of them, the first look asks more of the text.
COMMON = frozenset(
    """
    " $ ' ( * - -g -k -l -n -p -t -u : > ac add auth backup begin box client command config conn connect default
    eap exp expect false field g- hash host http ike imp key keys mount name net new pass pic pin protocol rar recovery
    save secret secrets security session set su token true user value words your {
    """.split()
)
# What names have that announce a secret, and the words beside which a made value is one.
_NAMES = """
    pw psk psw pword pasw pawd ssword jwt cred bearer pepper salt cookie sessid sess_id sess-id sessionid session_id session-id
    connect.sid mdp seed vpn wlan wi-fi wireless licen ftp smtp imap sequelize datasource pdo jdbc account( database( engine(
    pragma pptpd l2tpd chap logon log_on log-on login log_in log-in signin sign_in basic community
"""
# With a blank written as `^`, and with a question mark for each letter that one alphabet lacks.
_LANGUAGES = """
    has?o haslo contrase senha palavra- wachtwoord senord kennwort clave adgangskode salasana parol parool hesl lozink geslo
    zaporka tunnussana slapta nenosiri kata^la kata^sa pasahitz lykilor wagwoord pasvorto kodeord code^secret geheimzahl pincode
    schl cl\xe9^api cl?^api cle^api chiave jelsz ?ifr sifr m?t^kh?u phrase frase identifiant zugangsdaten zug\xe4nge passw
"""
# From the most frequent to the rarest character of sentences; none of the others is as frequent as any of these.
_FREQUENT = " etaoinsrhldcumfpgwybvkxjqz"
_EVEN, _ODD, _PAIR = 0, 1, 2


def of_rule(rule: Rule) -> Iterable[str]:
    """Give the words of which one stands in whatever a rule finds."""
    return [f"{name}(" for name in rule.before] if rule.before else rule.keywords


def words() -> list[str]:
    """Give all words, without those that have another one in them."""
    of_rules = {word for rule in (*PLACED, *TOOLS, *AS_WRITTEN) for word in of_rule(rule)} - COMMON
    others = [word.replace("^", " ") for word in (*_NAMES.split(), *_LANGUAGES.split())]
    found = sorted({*of_rules, *others})
    return [word for word in found if not any(other in word for other in found if other != word)]


def keywords_py() -> str:
    """Give the module that has every word under two pairs of its characters: one for each way it may lie in a text."""
    pairs: dict[str, list[str]] = {}
    found = words()
    for word in found:
        for pair in {_rarest(word, _EVEN, pairs): 1, _rarest(word, _ODD, pairs): 1} if len(word) > _PAIR else ():
            pairs.setdefault(pair, []).append(word)
    body = "\n".join(",".join((pair, *pairs[pair])) for pair in sorted(pairs))
    return _MODULE.replace("BODY", body).replace("SHORTEST", ",".join(word for word in found if len(word) == _PAIR))


def _rarest(word: str, first: int, known: dict[str, list[str]]) -> str:
    """Give the rarest of the pairs that a word has from a place on, and of those the one that fewest other words have."""
    pairs = [word[place : place + _PAIR] for place in range(first, len(word) - 1, _PAIR)]
    return min(pairs, key=lambda pair: (_frequency(pair[0]) * _frequency(pair[1]), len(known.get(pair, ())), pair))


def _frequency(char: str) -> int:
    return len(_FREQUENT) - _FREQUENT.index(char) if char in _FREQUENT else 0


_MODULE = '''"""The words of which one stands in whatever is found, asked for before any rule is loaded.

Written by `make docs` from the rules, the names and the languages; a test keeps it true.
"""

# Each line has a pair of characters and the words that are looked for where a text has the pair. Where a text is taken apart into
# pairs, a word may begin with one or in the middle of one: it has a line for either.
_TEXT = r"""
BODY
"""
# Too short for that.
SHORT = tuple(r"""SHORTEST""".encode("latin-1").split(b","))
_LINES = [line.split(b",") for line in _TEXT.strip("\\n").encode("latin-1").splitlines()]
# Counted as the pairs of a text are.
BY_PAIR = dict(zip(memoryview(b"".join([line.pop(0) for line in _LINES])).cast("H").tolist(), _LINES, strict=True))
PAIRS = frozenset(BY_PAIR)
'''
