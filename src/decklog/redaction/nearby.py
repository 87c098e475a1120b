"""Find values that look generated near a word for a secret: below a command, in a table, in a call or in a sentence."""

from collections.abc import Iterator

from decklog.redaction.keyvalue import Candidate, candidate_at, kind_of_name, split_name
from decklog.redaction.matcher import BytePattern
from decklog.redaction.normalize import TextView
from decklog.redaction.rules import Lazy, load_table

# Words for secrets. Candidates are in the same line or in the lines below.
_WORDS = (
    r"pass(?:w|phrase|code|\b)|pwd|(?:\b|_)pw(?:\b|_)|psk\b|secret|token(?:[^i]|$)|[a-z][ _-]?key(?:s?\b|_)"
    r"|\bkey (?:is|was|for|to)\b|cred|\bauth(?:[^o]|ori[sz]|$)|log[_-]?[io]n\b|logged in|(?:to|must) log in|sign[_-]?in\b|bearer"
    r"|jwt|hmac|cipher|crypt(?:[^o]|o[^g]|$)|wallet|mnemonic|[th]otp|sftp|ftp\b|smtp|imap|ldap|wi-?fi|wlan|vpn|licen[cs]e"
    r"|\bcodes?(?:[^\w-]|$)|\bpin\b|unlock|community|<<<"
    r"|kennwort|has[?l]o|contrase|mot[ _]de[ _]passe|senha|clave|wachtwoord|senord|salasana|parol|heslo|lozink|geslo|jelsz"
    r"|[?s]ifr[ea?]|vault"
)
_WORD = BytePattern(f"(?i){_WORDS}")
# Also matches letters beyond Latin-1, which become question marks in the bytes.
TRIGGER = rf"{_WORDS}|[?][?]"
# Words with characters beyond Latin-1.
_FOREIGN = Lazy(
    "(?i)парол|лозинк|пин-код|токен|ключ|κωδικ|סיסמ|كلمة|رمز|पासवर्ड|รหัสผ่าน|密码|密碼|口令|密钥|パスワード|暗証番号|トークン"
    "|비밀번호|암호|验证码|認証コード|인증번호|mật khẩu|kata sandi"
)
# Characters of a value: no blanks, quotes, brackets or separators.
_VALUE = Lazy(r"""[^\s"'`<>|,;()\[\]{}=«»„“”、。：，]{5,256}""")
# `name=` or `name: "` right before a value. Such values are left to `keyvalue`.
_OWNER = Lazy(r"([\w.$-]+)[\"'\]]{0,2}[ \t]*(?::=|=>|={1,2}|:)[ \t]*[@bru]{0,2}[\"'`(\[]{0,2}$")
_NAME_BEFORE = Lazy(r"([A-Za-z]+[ _-]+)?([\w-]+)$")
_CELL = Lazy(r"[ \t]*\|[ \t]*|\t+|,(?=\S)|[ \t]{2,}")
_PROMPT = Lazy(r"\s*(?:[$#%>]|>>>|PS [^>]*>|[\w.-]*>|\(\w+\)|irb[^>]*>|iex[^>]*>|mysql>|[\w-]+=[#>]|[A-Z]:\\[^>]*>)\s*\S")
_JOINED_WORDS = Lazy(r"[a-z]{3,12}(?:[-_.][a-z]{3,12}){2,7}")
# Words joined by punctuation are a passphrase near one of these words, and a name near others.
_PHRASE_WORD = Lazy(r"(?i)pass|pwd|\bpw\b|phrase|secret|login|cred|kennwort|contrase|senha|clave|wachtwoord|wi-?fi|wlan")
_ANY_NAME = frozenset(load_table("words")["names"]["any_name"].split())
_RUN, _RUN_BEFORE = Lazy(r"[0-9A-Za-z]{16,}"), Lazy(r"[0-9A-Za-z]+$")
_CHANGE = Lazy(r"[0-9](?=[A-Za-z])|[A-Za-z](?=[0-9])")
# Names such as `sha256WithRSAEncryption2048` have fewer changes between letters and digits.
_FEWEST_CHANGES = 4
_LONGEST_ID = 64
_MOST_LINES_BELOW = 2
_LONGEST_LINE = 2_000
_LONGEST_LABEL = 40
_MOST_VALUES = 200


def looks_generated(value: str) -> bool:
    """Return whether a value looks generated: its letters are mixed with digits, capitals or punctuation."""
    letters = sum(map(str.isalpha, value))
    digits = sum(map(str.isdigit, value))
    if not letters:
        return False
    signs = sum(char in "!#$%^&*+~?@" for char in value)
    if digits:
        return bool(signs) or len(value) >= 8 or digits > 1
    return bool(signs and letters > 3) or (len(value) >= 12 and 1 < sum(map(str.isupper, value)) < letters - 1)


def find_candidates(view: TextView) -> Iterator[Candidate]:
    """Yield generated-looking values in lines with a word for a secret, and in the lines below."""
    text = view.text
    found = 0
    for start, end, distance, header in _find_lines(view):
        line = text[start:end]
        for run in _VALUE.finditer(line):
            value = run[0].rstrip(".,:!?") if run[0][-1] in ".,:" else run[0]
            if (
                value.isalpha()
                or not (
                    looks_generated(value)
                    or _is_separate_cell(value, line, run.start(), distance, header)
                    or (_JOINED_WORDS.fullmatch(value) and _PHRASE_WORD.search(header))
                )
                or _has_name_before(line[max(0, run.start() - 80) : run.start()])
            ):
                continue
            if distance and not _is_isolated(value, line, run.start(), header):
                continue
            if not distance and not _has_secret_word(f"{line[: run.start()]} {line[run.start() + len(value) :]}"):
                continue
            found += 1
            if found > _MOST_VALUES:
                return
            first = start + run.start()
            yield _candidate(view, first, first + len(value), (start, end), distance, header)


def _has_secret_word(line: str) -> bool:
    """Return whether a line has a word for a secret outside of the value."""
    if any(not _is_part_of_id(line, start) for start, _, _ in _WORD.find_all(line.encode("latin-1", "replace"))):
        return True
    return not line.isascii() and _FOREIGN.search(line) is not None


def _is_isolated(value: str, line: str, place: int, header: str) -> bool:
    """Return whether a value below a word for a secret is alone on its line or in its column."""
    alone = line.strip(" \t\"'`*.,;>|-") == value.strip(" \t\"'`*.,;>|-")
    return alone or _is_secret_column(header, line, place) or bool(_CALLED_WITH.match(line))


# An annotation with test arguments, such as `@ValueSource(`.
_CALLED_WITH = Lazy(r"[ \t]*[@\[][A-Za-z][\w.]*\(")


def _is_separate_cell(value: str, line: str, place: int, distance: int, header: str) -> bool:
    """Return whether a short value with a digit is a table cell below its header, or alone below a label."""
    if not distance or not any(map(str.isdigit, value)):
        return False
    return (line.strip() == value and header.rstrip().endswith(":")) or _is_secret_column(header, line, place)


def _has_name_before(before: str) -> bool:
    owner = _OWNER.search(before)
    if owner is None:
        return False
    name = owner[1].lower()
    if split_name(owner[1])[-1:] in _NAME_ENDINGS:
        return True
    return name not in _ANY_NAME and not kind_of_name(owner[1]) and not owner[0].rstrip().endswith(":")


# Last words of settings that name something: `keyVaultName: kv-1`.
_NAME_ENDINGS = (["name"], ["id"], ["arn"], ["url"], ["uri"], ["path"])


def _find_lines(view: TextView) -> Iterator[tuple[int, int, int, str]]:
    """Yield each line to search: its start and end, the distance to the line with the word above it, and that line."""
    text, position, header, distance = view.text, 0, "", _MOST_LINES_BELOW + 1
    places = _word_places(view)
    place = next(places, -1)
    while position <= len(text):
        end = text.find("\n", position) % (len(text) + 1)
        if place >= 0 and place < end + 1:
            distance, header = 0, text[position : min(end, position + _LONGEST_LINE)]
            while 0 <= place < end + 1:
                place = next(places, -1)
        elif text[position:end].strip():
            distance += 1
        elif (
            not header.rstrip(" \t*_`").endswith((":", "is", "was", "value"))
            and "|" not in header
            and len(header) > _LONGEST_LABEL
        ):
            # End of the paragraph.
            distance = 41
        if distance <= _MOST_LINES_BELOW or (distance < 40 and "|" in text[position:end] and "|" in header):
            yield position, min(end, position + _LONGEST_LINE), min(distance, _MOST_LINES_BELOW + 1), header
        if place < 0 and distance > 40:
            return
        position = end + 1


def _word_places(view: TextView) -> Iterator[int]:
    places = (start for start, _, end in _WORD.find_all(view.data) if _is_secret_word(view.text, start, end))
    if view.text.isascii():
        yield from places
    else:
        yield from sorted([*places, *(match.start() for match in _FOREIGN.finditer(view.text))])


def _is_part_of_id(text: str, place: int) -> bool:
    """Return whether a word is part of a long sequence of letters and digits, such as an id."""
    run = _RUN_BEFORE.search(text, max(0, place - _LONGEST_ID), place + 1)
    run = _RUN.match(text, run.start()) if run else None
    return run is not None and len(_CHANGE.findall(run[0])) >= _FEWEST_CHANGES


def _is_secret_word(text: str, start: int, end: int) -> bool:
    """Return whether a word means a secret. A cache key, a public key, a page token or part of an id do not."""
    if _is_part_of_id(text, start):
        return False
    word = text[start:end].lower()
    if "key" not in word and "token" not in word:
        return True
    name = _NAME_BEFORE.search(text[max(0, start - 24) : end].rstrip(" \t\n\"'`:=.,;()[]{}"))
    return name is None or bool(kind_of_name(f"{(name[1] or '').strip()}_{name[2]}"))


def _candidate(view: TextView, start: int, end: int, line: tuple[int, int], distance: int, header: str) -> Candidate:
    text = view.text
    before = text[line[0] : start]
    return candidate_at(
        text,
        start,
        end,
        _kind(header, before),
        f"near-{distance}",
        name=(before[-40:] if not distance else header[-60:]).strip(),
        sign=_find_connector(before),
        quote=text[start - 1] if start > line[0] and text[start - 1] in "\"'`" else "",
        is_option=bool(_PROMPT.match(header)) if distance else bool(_PROMPT.match(before)),
        is_spaced=text[line[0] : line[1]].strip(" \t\"'`*.,;") == text[start:end].strip(".,;"),
        is_name_quoted=_is_secret_column(header, text[line[0] : line[1]], start - line[0]) if distance else False,
        starts_line=start == line[0],
        line=f"{text[line[0] : start][-160:]} {text[end : line[1]][:160]}",
    )


def _find_connector(before: str) -> str:
    bare = before.rstrip(" \t\"'`*([{«„“")
    last = bare.rsplit(None, 1)[-1].lower() if bare else ""
    if last in ("is", "was", "to", "are", "be", "now", "with", "as", "ist", "est", "es", "lautet", "use", "try"):
        return last
    return last[-1:] if last[-1:] in ":=,/?>)-(|" else ""


def _is_secret_column(header: str, line: str, place: int) -> bool:
    """Return whether a value is in a column whose header names a secret."""
    heads, column = _CELL.split(header.strip()), len(_CELL.findall(line[:place].lstrip()))
    return (
        1 < len(heads) == len(_CELL.split(line.strip()))
        and column < len(heads)
        and bool(kind_of_name(heads[column].strip("*\"' ")[-40:].replace(" ", "_")))
    )


def _kind(header: str, before: str) -> str:
    low = f"{header} {before}".lower()
    if "pass" in low or "pwd" in low or "login" in low or "pw" in low:
        return "password"
    return "token" if "token" in low else "secret" if "secret" in low else "key" if "key" in low else "password"
