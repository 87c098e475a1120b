"""Secrets given away by the name beside them: `password=x`, `"api_key": "x"`, `--token x`."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from decklog.redact import cookies, values
from decklog.redact.names import kind_of
from decklog.redact.patterns.pattern import Pattern
from decklog.redact.view import Found, View

_QUOTED = {mark: Pattern(rf"[^{mark}\n]*") for mark in "\"'`"}
_BARE = Pattern(r"<[^<>\n\"']*>[^\s\"'`]*|[^\s\"'`]*")
_LINE = Pattern(r"[^\n]*")
_CDATA = Pattern(r"[^\n\]]*")
_ELEMENT = Pattern(r"(?:[^<\n]|<[^/\n])*")
_LONGEST_DOUBT = 256
_LONGEST_KNOWN = 160
_MOST_KNOWN = 4_096
_DOUBTFUL = ("key", "credential", "auth")
_VERBS = ("pass", "auth", "pat", "pw", "key")

# What stands before a named value: `DB_PASSWORD=`, `"api_key": "`, `--token `, `<secret>`.
_NAME_STEM = (
    r"(?:pass(?:word|wd|phrase|code|wort|w)?|p(?:s?wd|sk|sw|word|w)|kennwort|senha|contrasena|wachtwoord|passord|salasana|adgangskode|heslo|haslo|parola|secret|token|key"
    r"|(?:api|secret|access|private) key|sess(?:ion)?[_-]?id|connect\.sid|jwt|auth|cred(?:ential)?s?|bearer|pat|pepper|salt|wif"
    r"|mdp)"
)
_TYPE = r"(?:&'\w+[ \t]+)?[\w.&\[\]<>]+(?:[ \t]*\|[ \t]*[\w.\[\]]+)*"
_ANY_QUOTE = r"[\"'`]"
# The last character of a match is the first of the value: where nothing follows, nothing need be asked.
_HEAD = Pattern(
    rf"(?i)(?:-[\w.-]*?{_NAME_STEM}[\w-]*[ \t]+{_ANY_QUOTE}?\S"
    rf"|\b(?:ENV|ARG|setx|setenv|fastcgi_param|set -\w+|config(?:ure)? set)[ \t]+[\w./:-]*?{_NAME_STEM}\w*[ \t]+{_ANY_QUOTE}?\S"
    rf"|\bset[ \t]+[\w-]+[:/][\w./:-]*?{_NAME_STEM}\w*[ \t]+{_ANY_QUOTE}?\S"
    rf"|\bcookie2?{_ANY_QUOTE}?[ \t]*[:=][ \t]*{_ANY_QUOTE}?\S"
    rf"|[ \t](?:-b|--cookie)[ \t=]*{_ANY_QUOTE}?[A-Za-z_][\w.%-]*=\S"
    rf"|[\w.$@-]*?{_NAME_STEM}[\w.-]*"
    rf"(?:(?:[ \t]*(?::[ \t]*{_TYPE}|\{{[\w; ]*\}})[ \t]*=[ \t]*[bfru@]{{0,2}}{_ANY_QUOTE}"
    rf"|{_ANY_QUOTE}?:?(?:[ \t]*,\s*|[ \t]*\n[ \t]*){_ANY_QUOTE}?value{_ANY_QUOTE}?[ \t]*:[ \t]*{_ANY_QUOTE}?"
    rf"|{_ANY_QUOTE}[ \t]*\{{(?:\s*\w+[ \t]*=[ \t]*(?:\w+|\"[^\"\n]*\"))*\s*default[ \t]*=[ \t]*{_ANY_QUOTE}"
    rf"|[ \t]*=[ \t]*[\w.]{{1,40}}\([ \t]*{_ANY_QUOTE}[\w.-]{{1,64}}{_ANY_QUOTE}[ \t]*,[ \t]*default[ \t]*=[ \t]*{_ANY_QUOTE}"
    r"|:[ \t]*[|>][+-]?\n[ \t]+"
    r"|[ \t]*[:=][ \t]*[bru]{0,2}(?:\"{3}|'{3})\n[ \t]*"
    rf"|[ \t]+(?:string|\[\]byte|text|varchar)[ \t]*:?=[ \t]*{_ANY_QUOTE}"
    rf"|[ \t]*[:=]?=?[ \t]*%s\s?{_ANY_QUOTE}[ \t,]+{_ANY_QUOTE}"
    rf"|[ \t]*:?=[ \t]*(?:new[ \t]+)?[\w.\[\]]{{1,40}}\([ \t]*[bfru]{{0,2}}{_ANY_QUOTE}"
    rf"|{_ANY_QUOTE}?[\])*]{{0,2}}[ \t]*(?:<{{1,2}}-|:{{1,3}}=|\?=|=>|={{1,3}}|:|\|\||\?\?)"
    rf"(?:\s*(?:string\(\d+\)[ \t]*)?[bfru@$]{{0,2}}{_ANY_QUOTE}{{1,3}}|[ \t]*(?:!!\w+[ \t]+)?)"
    rf"|{_ANY_QUOTE}[ \t]*,[ \t]*(?:(?:value|default)[ \t]*[=:][ \t]*)?{_ANY_QUOTE}"
    rf"|[ \t]+(?:(?:is|was|to)[ \t:]+)?{_ANY_QUOTE}"
    rf"|{_ANY_QUOTE}?[\])]{{0,2}}[ \t]+or[ \t]+{_ANY_QUOTE}"
    rf"|{_ANY_QUOTE}[ \t]+value[ \t]*=[ \t]*{_ANY_QUOTE}"
    rf"|{_ANY_QUOTE}\n\n"
    rf"|[({{][ \t]*{_ANY_QUOTE}"
    r"|[ \t]+is[ \t:]+"
    r"|[ \t]+for[ \t]+[\w.@-]+[ \t]*:[ \t]*"
    r"|[ \t]+\|[ \t]+)\S"
    rf"|{_ANY_QUOTE}?>(?:<!\[CDATA\[)?[^\s<]))"
)
_HEAD_PARTS = re.compile(
    r"(?is)(?:(env|arg|setx|setenv|fastcgi_param|set -\w+|set(?=[ \t]+[\w-]+[:/])|config(?:ure)? set)[ \t]+(?:[\w./:-]*[/:])?)?"
    r"((?:(?:api|secret|access|private) (?=key))?[\w.$@-]*)(.*)"
)
# The ways of giving a value that are not a sign between the two.
_ROUNDABOUT = re.compile(r"(?i)%s|value|default|string\(|[|>][+-]?\n|^\n\n$|^\|\|$|^\?\?$|^\s+or\s*$")
_LONGEST_HEAD = 160
_LONG_KEY = 32
_CALLED = re.compile(r"=[ \t]*(?:new[ \t]+)?[\w.\[\]]+\(")
_RANGE = re.compile(r"\d{1,3}-\d{1,4}")
_COOKIES = re.compile(r"[ \t](?:-b|--cookie)[ \t=]*[\"'`]?")
_FORMAT = re.compile(r"(?i)[^a-z](?:f|fr|rf)[\"']{1,3}$")
_BINDING = re.compile(r"(?:^|\s)(?:[#\[(:]|(?:@|v-|bind|on)[\w-]*:)$")
_EXPRESSION = re.compile(r"[A-Za-z_.$!?:&|=+() \t-]+[\"']")
_DIRECTIVE = re.compile(r"[a-z]+(?:[A-Z][a-z]+)+[\"']")
_LONG_QUOTE = re.compile(r"([\"'])\1\1\n[ \t]*$")
# A quote with letters right behind it is one of the value's own characters.
_SPILLED = re.compile(r"[\"'`]([A-Za-z0-9][^\s\"'`,;)\]}]*)")
_TAG = re.compile(r"!!\w+[ \t]+$")
_BLOCK = re.compile(r"[|>][+-]?\n[ \t]+$")


class Head(NamedTuple):
    """A name that announces a secret, how a value is tied to it, and how that is quoted."""

    kind: str
    name: str
    tie: str
    quote: str
    marks: int
    is_spaced: bool
    is_quoted: bool
    is_set: bool
    is_format: bool

    @property
    def is_setting(self) -> bool:
        """Tell whether no program is written like this: `DB_PASSWORD=x`, `ENV DB_PASSWORD x`, `--password x`."""
        return self.is_set or (self.tie == "=" and not self.is_spaced and self.name.isupper())


_known_heads: dict[str, Head | None] = {}


def read_head(source: str) -> Head | None:
    """Take a head apart, remembering those seen before; None if its name announces nothing."""
    source = source[-_LONGEST_HEAD:]
    if source not in _known_heads:
        if len(_known_heads) >= _MOST_KNOWN:
            _known_heads.clear()
        _known_heads[source] = _parse_head(source)
    return _known_heads[source]


def _parse_head(source: str) -> Head | None:
    parts = _HEAD_PARTS.match(source)
    setter, name, tie = parts.groups() if parts else ("", "", "")
    tie = _TAG.sub("", _LONG_QUOTE.sub(r"\1", tie.removesuffix("<![CDATA[")))
    kind = kind_of(name.rstrip(".-"))
    if kind is None:
        return None
    quote = tie[-1] if tie and tie[-1] in "\"'`" else ""
    marks = len(tie) - len(tie.rstrip("\"'`"))
    bare = tie.strip("\"'`[]()bfruBFRU@$")
    is_given = bool(_ROUNDABOUT.search(bare))
    is_set = bool(setter) or name.startswith("-")
    is_quoted = tie[:1] in ('"', "'", "`") and not is_given
    # A makefile's `?=` and `::=` assign as `=` does.
    tie_sign = "=" if bare.strip() in ("?=", "::=", ":::=", "<-", "<<-") else bare.strip()
    if not is_given and _CALLED.search(tie):
        tie_sign = "call"
    return Head(
        kind, name, ":" if is_given else tie_sign, quote, marks, bare[:1].isspace(), is_quoted, is_set, bool(_FORMAT.search(tie))
    )


class _Verdict(NamedTuple):
    """How much of a value is a secret, and of which kind."""

    length: int = 0
    kind: str = ""


def find(view: View) -> Iterator[Found]:
    """Find every value that its name gives away."""
    text, data, position = view.text, view.data, 0
    size = len(data)
    # The memory of values lasts for one text: secrets must not linger in the process.
    known: dict[tuple[str, bool], _Verdict] = {}
    while span := _HEAD.find(data, position):
        start, position = span[0], span[1] - 1
        if text[start] in "cC" and cookies.is_header(text, start):
            yield from cookies.find_in_line(view, position)
            position = max(cookies.line_end(view, position), span[1])
            continue
        if given := _COOKIES.match(text, start, position):
            yield from cookies.find_in_line(view, given.end())
            continue
        head = read_head(text[start:position])
        if head is None or _is_no_assignment(text, start, position):
            continue
        if head.marks == 2 and text[position - 2] != text[position - 1]:
            # Of two different quotes the first opens the value, and the second is its first character.
            position, head = position - 1, head._replace(quote=text[position - 2], marks=1)
        reader = _LINE if _BLOCK.search(text, start, position) else _reader(text[position - 1])
        if text.endswith("<![CDATA[", start, position):
            reader = _CDATA
        end = _value_end(view, reader, position, min(size, position + _LONGEST_DOUBT))
        if reader is _ELEMENT and text[end : end + 2] != "</":
            continue
        if spilled := _spilled_end(head, text, position, end):
            yield Found(position - 1, spilled, head.kind)
            position = spilled
            continue
        verdict = _known_verdict(known, head, text, start, position, end)
        if not verdict.length:
            continue
        end = position + verdict.length
        if verdict.length == _LONGEST_DOUBT:
            end = reader.end_at(data, position, size)
        yield Found(position, end, verdict.kind)
        position = end


def _reader(before: str) -> Pattern:
    """Give what reads a value, by the character before it."""
    return _ELEMENT if before == ">" else _QUOTED.get(before, _BARE)


def _value_end(view: View, reader: Pattern, start: int, limit: int) -> int:
    """Give the end of a value: the quote that is escaped as its first one is, not one that is escaped within it."""
    end, quote, opening = reader.end_at(view.data, start, limit), view.text[start - 1], view.width(start - 1)
    while quote in _QUOTED and view.text[end : end + 1] == quote and end < limit and _is_within(view.width(end), opening):
        end = reader.end_at(view.data, end + 1, limit)
    return end


def _is_within(width: int, opening: int) -> bool:
    """Tell whether a quote that came from so many characters is a part of the value that another such quote opened.

    Each level of JSON writes a backslash as two. What is left of the backslashes before a quote, when those of the value's own
    end are taken away, is either what the opening quote has or one more level's.
    """
    if opening & (opening - 1):
        return width > opening
    return width > opening and (width - opening) % (2 * opening) != 0


def _spilled_end(head: Head, text: str, start: int, end: int) -> int:
    """Give the end of a value that goes on behind its second quote, or 0."""
    spilled = _SPILLED.match(text, end) if head.marks == 1 and text[end : end + 1] == head.quote else None
    return spilled.end() if spilled and values.is_told(text[start:end] + spilled.group(1)) else 0


def _is_no_assignment(text: str, start: int, place: int) -> bool:
    """Tell whether a name is a marker's, part of a word or a path, or is asked for by a shell: `${DB_PASSWORD:?set it}`."""
    match text[start - 1 : start]:
        case ":":
            return text[start - 10 : start] == "[redacted:" or _is_in_resource_name(text, start) or _is_bound(text, start, place)
        case "#" | "[" | "(":
            return _is_bound(text, start, place)
        case "/":
            return text[start - 3 : start] == "://" or text[start - 2 : start] == "</" or "," in text[start:place]
        case "{":
            return text[start - 2 : start] == "${" and text[place] in "?+" and "." not in text[start:place]
        case before:
            return text[start] == "-" and before.isalnum()


def _is_bound(text: str, start: int, place: int) -> bool:
    """Tell whether a template binds a name to an expression: `[password]="user.password"`, `#pw="ngModel"`."""
    if text[place - 2 : place] not in ('="', "='") or text[place - 3].isspace():
        return False
    expression = _DIRECTIVE if text[start - 1] == "#" else _EXPRESSION
    return bool(_BINDING.search(text, max(0, start - 24), start) and expression.match(text, place))


def _is_in_resource_name(text: str, start: int) -> bool:
    """Tell whether a name is a part of what a cloud calls a thing: `arn:aws:secretsmanager:…:secret:name`."""
    name = text[max(0, start - 80) : start]
    return "arn:" in name and " " not in name[name.index("arn:") :]


def _starts_line(text: str, start: int) -> bool:
    line = text.rfind("\n", max(0, start - 40), start) + 1
    return text[max(line, start - 40) : start].strip(" \t-+") in ("", "export", "set", "ENV", "ARG", "name:")


def _known_verdict(known: dict[tuple[str, bool], _Verdict], head: Head, text: str, start: int, place: int, end: int) -> _Verdict:
    """Judge a value by its name, remembering the short ones seen before."""
    source = (text[start : end + 3], not head.quote and _starts_line(text, start))
    verdict = known.get(source)
    if verdict is None:
        verdict = _judge(head, text[place:end], text[end : end + 3], source[1])
        if len(source[0]) <= _LONGEST_KNOWN:
            if len(known) >= _MOST_KNOWN:
                known.clear()
            known[source] = verdict
    return verdict


def _judge(head: Head, value: str, after: str, starts_line: bool) -> _Verdict:
    if (marker := value.find("[redacted:")) >= 0:
        value, after = value[:marker], "[re"
    if not head.quote and head.tie != ">":
        whole, value = value, _trimmed(head, value, is_line=starts_line and after[:1] in ("", "\n", "\r"))
        after = (whole[len(value) :] + after)[:3]
    if value and is_secret(head, value, after, starts_line=starts_line):
        return _Verdict(len(value), head.kind)
    return _Verdict()


def _trimmed(head: Head, value: str, *, is_line: bool) -> str:
    """End an unquoted value where its surroundings go on; a setting with a line of its own has all of it."""
    if (is_line and head.is_setting) or value.isalnum():
        return value
    value = value[: _cut(head, value, is_line=is_line)]
    while value and value[-1] in ")]},;:.\\" and not _opens(value):
        value = value[:-1]
    return value


_NEXT_PARAMETER = r"&(?:amp;)?[A-Za-z][A-Za-z_.%\[\]-]+="
_NEXT_FIELD = rf"{_NEXT_PARAMETER}|&&|\|\||</|<\w+/?>"
_NEXT_IN_LINE = re.compile(rf"{_NEXT_PARAMETER}|[,;][A-Za-z][\w.]*=")
_NEXT_IN_SETTING = re.compile(_NEXT_FIELD + r"|[,;][\w.-]+[=:]")
_NEXT_IN_CONNECTION = re.compile(r";[A-Z][A-Za-z]+(?:=|$)")
_NEXT_IN_CODE = re.compile(_NEXT_FIELD + "|[,;]")


def _cut(head: Head, value: str, *, is_line: bool) -> int:
    """Give the place in a bare value where the next field, command or tag begins."""
    if is_line:
        cut = _NEXT_IN_LINE.search(value, 1) if head.tie == "=" else None
    elif not (cut := _NEXT_IN_CONNECTION.search(value, 1)):
        cut = (_NEXT_IN_SETTING if head.name.isupper() else _NEXT_IN_CODE).search(value, 1)
    return cut.start() if cut else len(value)


def _opens(value: str) -> bool:
    pairs = {")": "(", "]": "[", "}": "{"}
    opener = pairs.get(value[-1])
    return opener is not None and opener in value


def is_secret(head: Head, value: str, after: str, *, starts_line: bool) -> bool:
    """Decide whether a named value is a secret, given what follows it and whether its name starts the line."""
    following, after = after, after[:1]
    is_jumble = values.is_jumble(value) and not values.is_example(value)
    if not is_jumble and values.is_harmless(value) and not (head.kind == "password" and _is_phrase(head, value)):
        return False
    if (head.is_format and "{" in value) or values.is_label(head.name, value):
        return False
    if head.quote:
        return _is_opened(head, value, following) and _quoted_is_secret(head, value)
    if after == "(" or (after == "[" and following != "[re") or following == "...":
        return False
    if head.tie == ">":
        is_odd = not head.is_quoted or (_has_oddity(value) and " " not in value)
        return is_jumble or (is_odd and _quoted_is_secret(head, value))
    is_whole_line = starts_line and after in ("", "\n", "\r")
    if not is_jumble and _is_program(head, value, after) and not (is_whole_line and _is_line_setting(head, value)):
        return False
    return (is_jumble and bool(head.tie or head.is_set)) or _bare_is_secret(head, value, after, starts_line)


def _is_program(head: Head, value: str, after: str) -> bool:
    """Tell whether a bare value is an expression of a program or the beginning of a table."""
    if value[0] in "{[" and after == ":" and value[1:].replace("-", "_").isidentifier():
        return True
    if not values.is_code(value, after) or (head.is_setting and not values.is_reference(value)):
        return False
    return not (head.kind == "password" and after in ("", "\n", "\r", " ") and values.is_capped(value))


def _is_line_setting(head: Head, value: str) -> bool:
    """Tell whether a value that reads as an expression has a line of its own in a file of settings: `password: Vq7.lopp!`."""
    if head.tie not in (":", "=") or (head.kind != "password" and head.is_spaced):
        return False
    return head.kind in ("password", "secret", "token") and values.is_set_alone(value)


def _is_phrase(head: Head, value: str) -> bool:
    return values.is_passphrase(value) or (bool(head.quote) and head.tie in ("=", ":", "=>") and values.is_told_phrase(value))


def _is_opened(head: Head, value: str, following: str) -> bool:
    """Tell whether the quote before a value opens it, rather than closing what came before."""
    after = following[:1]
    if value[0] in "\"'`":
        return after == head.quote and values.is_told(value[1:]) and value[1:].isalnum()
    if head.marks == 2 or (head.marks == 3 and following != head.quote * 3):
        return False
    if (following[1:2] == ":" and head.tie == ":") or (head.quote == "`" and " " in value):
        return False
    if head.is_quoted:
        return True
    if after != head.quote and not (value[0].isalnum() and _mixes(value) and " " not in value):
        return False
    if value[0] in " ),;:]}":
        return value[0] != " " and (values.has_many_signs(value) or values.is_told(value[1:]))
    return not (value[0] == "+" and values.is_code(value[1:].strip("+ "), ""))


def _quoted_is_secret(head: Head, value: str) -> bool:
    if head.kind == "session":
        return values.is_session_id(value)
    if values.is_assembly_token(head.name, value):
        return False
    if head.tie == "call":
        # Most calls take the name of a secret and give the secret back.
        return values.looks_random(value) and not values.is_field_name(value)
    if (head.tie == "" and not head.is_set) or head.tie.startswith(("is", "was", "to", "for", ",", "==")):
        # Words that merely stand near each other: only a value that is no word counts.
        is_odd = _has_oddity(value) if head.kind == "password" else values.is_random_or_odd(value) and head.kind not in _DOUBTFUL
        return is_odd and len(value) >= 4 and head.name.lower() not in _VERBS and " " not in value
    if head.kind == "password":
        return not values.is_field_name(value)
    if values.is_field_name(value):
        return False
    if head.kind in _DOUBTFUL:
        is_random = values.looks_random(value) or (len(value) >= _LONG_KEY and values.has_many_signs(value))
        return is_random and not values.is_place(value)
    if len(value) < 4 or (" " in value and head.kind != "secret"):
        return values.looks_random(value) and " " in value
    if head.is_quoted and head.tie in (":", "=>"):
        return not (values.is_word(value) and len(value) < 24 and not value.isalpha())
    if values.is_word(value):
        return values.is_odd_word(value) or (value.isalpha() and len(value) >= (8 if head.kind == "secret" else 16))
    return (len(value) >= 6 and _mixes(value)) or value.isdigit()


def _bare_is_secret(head: Head, value: str, after: str, starts_line: bool) -> bool:
    if head.kind == "session":
        return values.is_session_id(value)
    if head.tie == "" and not head.is_set:
        return False
    if head.is_quoted and head.tie in (":", "=>", ","):
        return values.looks_random(value) and not value.isdigit()
    if head.kind != "password" and (value[0] == ":" or values.is_place(value)):
        return False
    if values.looks_random(value):
        return True
    if head.kind in _DOUBTFUL:
        return False
    if head.tie in ("|", "is") or head.tie.startswith("for"):
        is_odd = _has_oddity(value) or (len(value) >= 8 and value.isalpha() and not values.is_identifier(value))
        return is_odd and len(value) >= 6
    if head.kind == "password":
        return _bare_password(head, value, after, starts_line)
    if head.tie == "=" and not head.is_spaced:
        return (_mixes(value) and len(value) >= 6) or (len(value) >= 16 and value.isalnum()) or values.is_odd_word(value)
    return len(value) >= 8 and any(map(str.isdigit, value)) and _mixes(value) and not values.is_type_name(value)


def _bare_password(head: Head, value: str, after: str, starts_line: bool) -> bool:
    if value[0] == ":" and (head.is_spaced or head.tie == ":"):
        return False
    if value.isdigit():
        return len(value) > 3
    if after == " " and _RANGE.fullmatch(value):
        return False
    if not values.is_word(value):
        return not values.is_numbered_word(value, is_spaced=head.is_spaced) and (_mixes(value) or not value.isalnum())
    if head.is_setting and head.name.isupper():
        return not values.is_field_name(value)
    if head.tie == "=" and not head.is_spaced:
        return after not in (",", ")", ";", ".", "]", "}") and not any(mark in value for mark in "_.")
    if head.tie != ":":
        return False
    return after in ("", "\n") and value.islower() and value.isalpha() and len(value) >= 6 and starts_line


def _mixes(value: str) -> bool:
    """Tell whether a value has both letters and something else."""
    return any(map(str.isalpha, value)) and not value.replace("_", "").isalpha()


def _has_oddity(value: str) -> bool:
    """Tell whether a value has a digit or a sign that names do not have."""
    return any(char.isdigit() or not (char.isalpha() or char in "-_./:") for char in value) and any(map(str.isalnum, value))
