"""Find values that have a name: code, settings, headers, addresses, shell, JSON, YAML, XML and tables."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from decklog.redaction.matcher import BytePattern
from decklog.redaction.normalize import TextView
from decklog.redaction.rules import Lazy, load_table

_WORDS = {name: frozenset(words.split()) for name, words in load_table("words")["names"].items()}
_PASSWORD_ENDS = tuple(_WORDS["password_ends"])
_NOT_PASSWORDS = tuple(_WORDS["not_passwords"])
_CAMEL = Lazy(r"([a-z0-9])([A-Z])|([A-Z]+)([A-Z][a-z])")
_SEPARATORS = Lazy(r"[^a-z0-9]+")
LONGEST_VALUE = 256
_LONGEST_COOKIES = 4_000


class Candidate(NamedTuple):
    """A value that may be a secret, with the context that the judge evaluates."""

    start: int
    end: int
    value: str
    kind: str
    source: str
    name: str = ""
    sign: str = ""
    quote: str = ""
    after: str = ""
    before: str = ""
    is_option: bool = False
    is_spaced: bool = False
    is_name_quoted: bool = False
    starts_line: bool = False
    # Whether the value is a secret without a score.
    is_sure: bool = False
    # The line around the value.
    line: str = ""


def split_name(name: str) -> list[str]:
    """Split a name into its lower-case words, in any style."""
    return [word for word in _SEPARATORS.split(_CAMEL.sub(r"\1\3_\2\4", name).lower()) if word]


@lru_cache(4_096)
def kind_of_name(name: str) -> str:
    """Return the kind of secret that a name implies; an empty string for other names."""
    parts = split_name(name[-96:])
    while len(parts) > 1 and (parts[-1].isdigit() or parts[-1] in _WORDS["trailing"]):
        parts.pop()
    if not parts or parts[0] in _WORDS["asked"] or (len(parts) > 1 and parts[0] in _WORDS["labels"]):
        return ""
    if parts[0] == "existing" and "secret" in parts:
        return ""
    last, before = parts[-1].rstrip("0123456789"), parts[-2] if len(parts) > 1 else ""
    if _is_session(last, before, parts):
        return "session"
    return (
        _password_kind(last, before) or _secret_kind(last, before) or _token_kind(last, before, parts) or _key_kind(last, before)
    )


def _is_session(last: str, before: str, parts: list[str]) -> bool:
    if last.endswith("sessid") or (last.endswith("sessionid") and len(parts) == 1):
        return True
    if last == "sid":
        return before == "connect"
    return last == "id" and before == "session" and len(parts) > 2 and parts[-3] in ("x", "net")


def _password_kind(last: str, before: str) -> str:
    if last.endswith(_PASSWORD_ENDS) or last in _WORDS["password_words"]:
        return "password"
    if last.endswith(("pass", "psk")) and not last.endswith(_NOT_PASSWORDS):
        return "password"
    if (last == "passe" and before in ("de", "palavra")) or (last == "phrase" and before in ("pass", "seed", "secret")):
        return "password"
    return "pin" if last in ("pin", "pincode") or (last == "code" and before in _WORDS["code_owners"]) else ""


def _secret_kind(last: str, before: str) -> str:
    if last == "secret" and before in _WORDS["secrets_by_name"]:
        return ""
    if last.endswith("secret") or (last == "seed" and before in ("otp", "totp", "mfa", "secret", "wallet")):
        return "secret"
    if last == "credentials" and before in ("bind", "security"):
        return "password"
    if last in ("credential", "credentials", "creds", "cred") or (last == "pepper" and before):
        return "credential"
    return "secret" if (before, last) in (("secret", "hash"), ("key", "material")) else ""


def _token_kind(last: str, before: str, parts: list[str]) -> str:
    if last == "token" and parts[-3:-1] == ["public", "key"]:
        return ""
    if last.endswith("webtoken") and len(parts) < 4:
        return ""
    if last.endswith("token") and before not in _WORDS["plain_tokens"]:
        return "" if last[:-5] in _WORDS["plain_tokens"] and last != "token" else "token"
    if last in ("jwt", "bearer") or (last == "pat" and not _WORDS["pat_owners"].isdisjoint(parts)):
        return "token"
    return "auth" if last in ("authorization", "auth") else ""


def _key_kind(last: str, before: str) -> str:
    if last in _WORDS["plain_keys"] or last.endswith("apikey") or (last == "key" and before in _WORDS["key_owners"]):
        return "api-key"
    if last == "storagekey" or (last == "key" and before not in _WORDS["public_keys"]):
        return "key"
    return "key" if (last == "salt" and before) or last == "wif" or (last == "keys" and before in _WORDS["key_owners"]) else ""


_STEM = (
    r"(?:pass(?:word|owrd|wrod|wd|phrase|code|wort|w)?|p(?:s?wd|sk|sw|word|w)|pas?w(?:or)?d|pssword|kennwort|senha|contrasena"
    r"|wachtwoord|passord|salasana|adgangskode|heslo|haslo|parola|secret|token|key|(?:api|secret|access|private) key"
    r"|sess(?:ion)?[_-]?id|connect\.sid|jwt|auth|cred(?:ential)?s?|bearer|pepper|salt|wif|pat(?:\b|[_0-9]|(?-i:[A-Z]))"
    r"|mdp|mot[_-]?de[_-]?passe|palavra[_-]?passe|jelszo|lozinka|geslo|losenord|(?:otp|mfa|secret)[_-]?seed"
    r"|\bpin(?:[_-]?code)?\b|_pin\b|(?:unlock|access|door|gate|alarm|safe|recovery|backup|activation|pairing|otp|mfa)[_-]?code\b)"
)
_TYPE = r"(?:&'\w+[ \t]+|\[[\w:]*\]const[ \t]+)?(?:&?\[\w+;[ \t]*\w+\]|[\w.&\[\]<>]+)(?:[ \t]*\|[ \t]*[\w.\[\]]+)*"
_Q = r"[\"'`]"
# How a value follows its name. The last character of a head is the first one of the value.
_CONNECTORS = (
    # A declaration with a type.
    rf"[ \t]*(?::[ \t]*{_TYPE}|\{{[\w; ]*\}})[ \t]*(?:=|by[ \t]+lazy[ \t]*\{{)[ \t]*[*&]?[bfru@]{{0,2}}{_Q}",
    rf"[ \t]+(?:(?:as[ \t]+)?string|\[\]byte|text|varchar)[ \t]*:?=[ \t]*{_Q}",
    # The name and the value are fields of one object.
    rf"{_Q}?:?(?:[ \t]*,\s*|[ \t]*\n[ \t]*){_Q}?(?:use)?value{_Q}?[ \t]*:[ \t]*{_Q}?",
    # A variable with a default.
    rf"{_Q}[ \t]*\{{(?:\s*\w+[ \t]*=[ \t]*(?:\w+|\"[^\"\n]*\"))*\s*default[ \t]*=[ \t]*{_Q}",
    rf"[ \t]*=[ \t]*[\w.]{{1,40}}\([ \t]*{_Q}[\w.-]{{1,64}}{_Q}[ \t]*,[ \t]*default[ \t]*=[ \t]*{_Q}",
    # Blocks and long strings.
    r":\s*[|>][+-]?\n[ \t]+",
    r"[ \t]*[:=][ \t]*[bru]{0,2}(?:\"{3}|'{3})\n[ \t]*",
    # A format string and its argument, a call.
    rf"[ \t]*[:=]?=?[ \t]*%s[\s;]?{_Q}(?:[ \t,]+[A-Za-z][\w.]*){{0,4}}[ \t,]+{_Q}",
    rf"[ \t]*:?=[ \t]*(?:new[ \t]+)?[\w.\[\]]{{1,40}}\([ \t]*[bfru]{{0,2}}{_Q}",
    # An assignment.
    rf"{_Q}?[\])*]{{0,2}}[ \t]*(?:<{{1,2}}-|:{{1,3}}=|\?=|=>|={{1,3}}|:\*{{0,2}}|\|\|=?|\?\?=?|//=)"
    rf"(?:\s*(?:string\(\d+\)[ \t]*|\(\n\s*|<<|!{{1,2}}(?:sub|base64|unsafe|binary|str)[ \t]+)?[bfrun@$]{{0,2}}{_Q}{{1,3}}"
    r"|[ \t]*(?:(?:!!|&)\w+[ \t]+)?)",
    # Arguments, arrows and words between the two.
    rf"{_Q}[ \t]*,[ \t]*(?:(?:value|default)[ \t]*[=:][ \t]*)?{_Q}",
    rf"\*?[ \t]+(?:(?:is|was|to)[ \t:]+)?{_Q}",
    rf"(?:{_Q}?[\])]{{1,2}})?[ \t]+or[ \t]+{_Q}",
    rf"{_Q}[ \t]+value[ \t]*=[ \t]*{_Q}",
    rf"{_Q}[ \t]*->[ \t]*{_Q}",
    rf"{_Q}?[\])]{{0,2}}[ \t]*(?:#|//|--|;)[ \t]*(?:=>|->)[ \t]*{_Q}",
    rf"{_Q}\n\n",
    rf"{_Q}[ \t]*\n\s*:\s*{_Q}",
    rf"[({{][ \t]*{_Q}",
    r"[ \t]+is[ \t:]+",
    r"[ \t]+for[ \t]+[\w.@-]+[ \t]*:[ \t]*",
    r"[ \t]+\|[ \t]+",
)
_HEAD = BytePattern(
    rf"(?i)(?:-[\w.-]*?{_STEM}[\w-]*[ \t]+{_Q}?[^\s=:]"
    rf"|\b(?:ENV|ARG|setx|setenv|fastcgi_param|set -\w+|config(?:ure)? set(?: --[\w-]+)?)[ \t]+[\w./:-]*?{_STEM}\w*[ \t]+{_Q}?\S"
    rf"|\bset[ \t]+[\w-]+[:/][\w./:-]*?{_STEM}\w*[ \t]+{_Q}?\S"
    rf"|\bcookie2?{_Q}?[ \t]*[:=][ \t]*{_Q}?\S"
    rf"|(?:^|[ \t])(?:-b|--cookie)[ \t=]*{_Q}?[A-Za-z_][\w.%-]*=\S"
    rf"|[\w.$@-]*?{_STEM}[\w.-]*(?:(?:{'|'.join(_CONNECTORS)})\S|{_Q}?>(?:\s*<(?:\w*value|string)>)?(?:<!\[CDATA\[)?[^\s<]))"
)
# Prefilter for heads, matched against the lower-case bytes of a text.
_LOWER_STEM = _STEM.replace("(?-i:[A-Z])", "[a-z]")
TRIGGER = (
    rf"{_LOWER_STEM}[\w.-]*(?:[\"'`]?[\])*]{{0,2}}\s*(?:[:=,|>(\[{{#;?/\n]|<-|->|--)"
    r"|[\"'`*]{0,2}[ \t]+(?:is|was|to|for|or|as|string|\[\]byte|text|varchar|value|[\"'`])|[\"'`]\n)"
    rf"|-[\w.-]*{_LOWER_STEM}[\w-]*[ \t]"
    r"|\b(?:env|arg|setx|setenv|fastcgi_param|set|config(?:ure)? set)[ \t]+\S|cookie|[ \t]-b[ \t=\"']|^-b"
)
_PARTS = Lazy(
    r"(?is)(?:(env|arg|setx|setenv|fastcgi_param|set -\w+|set(?=[ \t]+[\w-]+[:/])|config(?:ure)? set(?: --[\w-]+)?)"
    r"[ \t]+(?:[\w./:-]*[/:])?)?((?:(?:api|secret|access|private) (?=key))?[\w.$@-]*)(.*)"
)
_INDIRECT = Lazy(r"(?i)%s|value|default|string\(|[|>][+-]?\n|^\n\n$|^\|\|$|^\?\?$|^\s+or\s*$")
_COMMENTED_ARROW = Lazy(r"(?:#|//|--|;)[ \t]*(?:=>|->)")
_BLOCK = Lazy(r"[|>][+-]?\n[ \t]+$")
_CALLED = Lazy(r"=[ \t]*(?:new[ \t]+)?[\w.\[\]]+\(")
_CONVERTED = Lazy(
    r"(?i)=[ \t]*(?:new[ \t]+)?(?:\[\]byte|bytes(?:\.fromhex)?|bytearray|buffer\.from|string(?:::from)?|str|secret_?str|secret"
    r"|some|just|\w*\.?(?:b64decode|unhexlify|fromhex|atob))\("
)
_ASSIGNING = frozenset(("?=", "::=", ":::=", "<-", "<<-", "||=", "??=", "//="))
_QUOTED = {mark: Lazy(rf"[^{mark}\n]*+") for mark in "\"'`"}
_BARE = Lazy(r"(?a)(?:<[^<>\n\"']*>|\[[A-Za-z]+ [^\[\]\n\"']*\]|\([A-Za-z]+ [^()\n\"']*\))[^\s\"'`]*|[^\s\"'`]*")
_ELEMENT = Lazy(r"(?:[^<\n]|<[^/\n])*+")
_LINE = Lazy(r"[^\n]*+")
_COOKIE = Lazy(r"(?:^|[\s;,\"'=:])([\w.%-]{1,64})=([^\s;,\"'`]+)")
_COOKIE_ATTRIBUTES = frozenset(("path", "domain", "expires", "max-age", "samesite", "secure", "httponly", "priority", "version"))


class KeyHead(NamedTuple):
    """A name, and the operator that connects a value to it."""

    kind: str
    name: str
    sign: str
    quote: str
    marks: int
    is_option: bool
    is_spaced: bool
    is_name_quoted: bool


@lru_cache(4_096)
def read_head(source: str) -> KeyHead | None:
    """Parse a head; return None if its name implies no secret."""
    parts = _PARTS.match(source)
    if parts is None:
        return None
    setter, name, connector = parts.groups()
    kind = kind_of_name(name.rstrip(".-").lstrip("-"))
    if not kind:
        return None
    connector = connector.removesuffix("<![CDATA[")
    quote = connector[-1] if connector and connector[-1] in "\"'`" else ""
    marks = len(connector) - len(connector.rstrip("\"'`")) if quote else 0
    bare = _COMMENTED_ARROW.sub("=", connector).strip("\"'`[]()bfrunBFRUN@$*")
    is_indirect = bool(_INDIRECT.search(bare))
    sign = bare.strip().lower().replace("->", "=>")
    sign = "=" if sign in _ASSIGNING else sign
    if not is_indirect and _CALLED.search(connector):
        sign = "=" if _CONVERTED.search(connector) else "call"
    is_option = bool(setter) or name.startswith("-")
    is_name_quoted = connector[:1] in ('"', "'", "`") and not is_indirect
    return KeyHead(kind, name, ":" if is_indirect else sign, quote, marks, is_option, bare[:1].isspace(), is_name_quoted)


def find_candidates(view: TextView) -> Iterator[Candidate]:
    """Yield every named value of a text."""
    text, position = view.text, 0
    while match := _HEAD.search(view.data, position):
        start, position = match.start(), match.end() - 1
        if _is_cookie_head(text, start, position):
            end = _match_end(_LINE, text, position, min(len(text), position + _LONGEST_COOKIES))
            yield from _cookies(view, start, end)
            position = max(position, end)
            continue
        head = read_head(text[max(start, position - 480) : position])
        if head is None or _is_not_name(text, start, position) or _is_plain_key(text, start, head.name):
            continue
        head, position = _adjust_head(head, view, position)
        end = _value_end(view, head, start, position)
        if end <= position:
            continue
        reached = position
        for one in _candidates_at(view, head, start, position, end):
            yield one
            if not head.quote and one.start == position:
                # A quoted value may contain another name; a bare one can't.
                reached = one.end
        position = max(position, reached)


def _candidates_at(view: TextView, head: KeyHead, start: int, position: int, end: int) -> Iterator[Candidate]:
    text = view.text
    starts_line = _starts_line(text, start)
    if not head.quote and head.sign != ">":
        phrase = _phrase_end(head, text, end, starts_line=starts_line)
        if phrase > end:
            yield _candidate(view, head, start, position, phrase, starts_line=starts_line)
        end = position + len(trim(head, text, start, position, end, starts_line=starts_line))
    if end > position:
        yield _candidate(view, head, start, position, end, starts_line=starts_line)
    arrow = _ARROW.match(text, end) if head.quote or text[end : end + 1] == " " else None
    if arrow and head.sign != ",":
        last = _match_end(_QUOTED[arrow[1]], text, arrow.end(), min(len(text), arrow.end() + LONGEST_VALUE))
        if last > arrow.end():
            yield _candidate(view, head, start, arrow.end(), last, starts_line=False)


_ARROW = Lazy(r"[\"'`)]{0,2}[ \t]*(?:->|=>|→|to)[ \t]*([\"'`])")


def _candidate(view: TextView, head: KeyHead, start: int, position: int, end: int, *, starts_line: bool) -> Candidate:
    return candidate_at(
        view.text,
        position,
        end,
        head.kind,
        "named",
        name=head.name,
        sign=head.sign,
        quote=head.quote,
        before=view.text[max(0, start - 2) : start],
        is_option=head.is_option,
        is_spaced=head.is_spaced,
        is_name_quoted=head.is_name_quoted,
        starts_line=starts_line,
    )


def candidate_at(text: str, start: int, end: int, kind: str, source: str, **more: Any) -> Candidate:
    """Build the candidate for a range of a text, with the adjacent characters and its line."""
    around = {
        "quote": text[start - 1] if start and text[start - 1] in "\"'`" else "",
        "after": text[end : end + 3],
        "before": text[max(0, start - 2) : start],
        "line": line_around(text, start, end),
    }
    return Candidate(start, end, text[start:end], kind, source, **{**around, **more})


def line_around(text: str, start: int, end: int) -> str:
    """Return the line of a value, up to 160 characters on each side."""
    first = text.rfind("\n", max(0, start - 160), start)
    last = text.find("\n", end, end + 160)
    return text[max(0, start - 160) if first < 0 else first + 1 : start] + " " + text[end : end + 160 if last < 0 else last]


def _is_cookie_head(text: str, start: int, position: int) -> bool:
    first = text[start:position].lstrip().lower()
    return (first.startswith(("-b", "--cookie")) and "=" in first) or (
        first.startswith("cookie") and first[6:7] in "2\"'` \t:=" and first[6:7] != ""
    )


def _cookies(view: TextView, start: int, end: int) -> Iterator[Candidate]:
    for pair in _COOKIE.finditer(view.text, start, end):
        if pair[1].lower() not in _COOKIE_ATTRIBUTES:
            yield Candidate(
                pair.start(2),
                pair.end(2),
                pair[2][:LONGEST_VALUE],
                "cookie",
                "cookie",
                pair[1],
                "=",
                after=view.text[pair.end() : pair.end() + 1],
            )


_WORD_BEFORE = Lazy(r"([A-Za-z]{2,16})[ \t]$")


def _is_plain_key(text: str, start: int, name: str) -> bool:
    """Return whether the preceding word marks a key or a token as harmless: `cache key: …`."""
    if name.lower() not in ("key", "token", "keys"):
        return False
    before = _WORD_BEFORE.search(text, max(0, start - 20), start)
    return before is not None and not kind_of_name(f"{before[1]}_{name}")


def _is_not_name(text: str, start: int, place: int) -> bool:
    """Return whether a match is no name: part of a marker, a path or an address, or a variable in a shell test."""
    before = text[start - 1 : start] if start else ""
    if before == ":":
        return text[start - 10 : start] == "[redacted:" or "arn:" in text[max(0, start - 80) : start].split(" ")[-1]
    if before == "/":
        return text[start - 3 : start] == "://" or text[start - 2 : start] == "</" or "," in text[start:place]
    if before == "{":
        return text[start - 2 : start] == "${" and text[place] in "?+" and "." not in text[start:place]
    return text[start] == "-" and before.isalnum()


def _adjust_head(head: KeyHead, view: TextView, position: int) -> tuple[KeyHead, int]:
    """Return the head and the start of its value; a second quote of another kind belongs to the value."""
    text = view.text
    if head.marks == 2 and text[position - 2] != text[position - 1]:
        return head._replace(quote=text[position - 2], marks=1), position - 1
    if head.sign in (":", "=") and head.name[:1] == "-" and head.name[1:2] != "-" and (head.sign == ":" or head.is_spaced):
        return head._replace(name=head.name[1:], is_option=False), position
    return head, position


def _value_end(view: TextView, head: KeyHead, start: int, position: int) -> int:
    text = view.text
    limit = min(len(text), position + LONGEST_VALUE)
    if text.endswith("<![CDATA[", start, position):
        return text.find("]]>", position, limit) if "]]>" in text[position:limit] else limit
    if _BLOCK.search(text[max(start, position - 60) : position]):
        return _block_end(text, position, _match_end(_LINE, text, position, len(text)))
    if head.quote:
        return _quoted_end(view, head, position, limit)
    if text[position - 1] == ">":
        end = _match_end(_ELEMENT, text, position, limit)
        return end if text[end : end + 2] == "</" else position
    end = _match_end(_BARE, text, position, limit)
    return _match_end(_BARE, text, position, len(text)) if end == limit else end


def _match_end(pattern: Lazy, text: str, start: int, limit: int) -> int:
    """Return the end of the match that starts here, or the start if there is none."""
    match = pattern.match(text, start, limit)
    return match.end() if match else start


def _quoted_end(view: TextView, head: KeyHead, position: int, limit: int) -> int:
    """Return the end of a quoted value: the next quote with the same escaping as the opening one."""
    text, quote, opening = view.text, head.quote, view.width(position - 1)
    if head.marks == 3:
        last = text.find(quote * 3, position, limit)
        return last if last >= 0 else position
    end = _match_end(_QUOTED[quote], text, position, limit)
    while end < limit and text[end : end + 1] == quote:
        if _is_inner(view.width(end), opening):
            end = _match_end(_QUOTED[quote], text, end + 1, limit)
        elif quote == "'" and opening == 1 and text.startswith(("'\"'\"'", "'''"), end):
            end = _match_end(_QUOTED[quote], text, end + (5 if text[end + 1] == '"' else 3), limit)
        else:
            break
    if end == limit and end < len(text):
        end = _match_end(_QUOTED[quote], text, position, len(text))
    return end


def _is_inner(width: int, opening: int) -> bool:
    """Return whether a quote is escaped inside the value; JSON doubles the backslashes at each level."""
    if opening & (opening - 1):
        return width > opening
    return width > opening and (width - opening) % (2 * opening) != 0


def _block_end(text: str, start: int, end: int) -> int:
    """Return the end of an indented block."""
    indent = text[text.rfind("\n", 0, start) + 1 : start]
    for _ in range(40):
        if not indent or not text.startswith(indent, end + 1) or not text[end + 1 + len(indent) : end + 2 + len(indent)].strip():
            break
        end = text.find("\n", end + 1) % (len(text) + 1)
    return end


def _starts_line(text: str, start: int) -> bool:
    line = text.rfind("\n", max(0, start - 40), start) + 1
    return text[max(line, start - 40) : start].strip(" \t-+") in ("", "export", "set", "ENV", "ARG", "name:", "$")


_FOLLOWING_WORDS = Lazy(r"(?: [^\s\"'`<>{}()\[\]|;,=]{1,24}){1,9}(?=[ \t]*(?:\n|$))")


def _phrase_end(head: KeyHead, text: str, end: int, *, starts_line: bool) -> int:
    """Return the end of a value of several words that fill the line: `pwd: correct horse`."""
    if text[end : end + 1] != " " or head.sign not in ("=", ":") or head.kind not in ("password", "secret") or not starts_line:
        return end
    words = _FOLLOWING_WORDS.match(text, end)
    return words.end() if words else end


_PARAMETER = r"&(?:amp;)?[A-Za-z][A-Za-z_.%\[\]-]+="
_NEXT_IN_LINE = Lazy(rf"{_PARAMETER}|[,;][A-Za-z][\w.]*=")
_NEXT_IN_SETTING = Lazy(rf"{_PARAMETER}|&&|\|\||</|<\w+/?>|[,;][\w.-]+[=:]")
_NEXT_IN_CODE = Lazy(rf"{_PARAMETER}|&&|\|\||</|<\w+/?>|[,;]")
_NEXT_IN_CONNECTION = Lazy(r";[A-Z][A-Za-z]+(?:=|$)")
_NEXT_IN_QUERY = Lazy(r"&|;[A-Za-z][\w ]*=|;$|#[A-Za-z/]+$|</")
_NEXT_IN_FIELDS = Lazy(r";[A-Za-z][\w ]*(?:=|$)|;$|</")
_PAIRS = {")": "(", "]": "[", "}": "{", ">": "<"}


def trim(head: KeyHead, text: str, start: int, position: int, end: int, *, starts_line: bool) -> str:
    """Return a bare value without the trailing text that belongs to its surroundings."""
    value = text[position:end]
    if (marker := value.find("[redacted:")) >= 0:
        value = value[:marker]
    if value.isalnum():
        return value
    is_line = starts_line and text[end : end + 1] in ("", "\n", "\r")
    if is_line and (head.is_option or (head.sign == "=" and not head.is_spaced and head.name.isupper())):
        return value
    before = text[start - 1 : start] if start else ""
    if before == " " and text[start - 2 : start - 1] == ";":
        before = ";"
    if head.sign == "=" and (before == "?" or (before == "&" and text[start - 2 : start - 1] != "&")):
        cut = _NEXT_IN_QUERY.search(value, 1)
    elif before == ";" and "=" in text[max(0, start - 64) : start]:
        cut = _NEXT_IN_FIELDS.search(value, 1)
    elif is_line:
        cut = _NEXT_IN_LINE.search(value, 1) if head.sign == "=" else None
    else:
        cut = _NEXT_IN_CONNECTION.search(value, 1) or (_NEXT_IN_SETTING if head.name.isupper() else _NEXT_IN_CODE).search(
            value, 1
        )
    value = value[: cut.start()] if cut else value
    while value and value[-1] in ")]},;:.\\>" and _PAIRS.get(value[-1], "\x00") not in value:
        value = value[:-1]
    return value
