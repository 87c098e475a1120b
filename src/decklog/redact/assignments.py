"""Secrets given away by the name beside them: `password=x`, `"api_key": "x"`, `--token x`."""

from collections.abc import Iterator
from typing import NamedTuple

from decklog.prepared import prepared
from decklog.redact import cookies, phrases, sections, values
from decklog.redact.names import kind_of
from decklog.redact.patterns.pattern import Pattern
from decklog.redact.placeholders import STOP_WORDS
from decklog.redact.verdicts import Head, is_secret
from decklog.redact.view import Found, View

_QUOTED = {mark: Pattern(rf"[^{mark}\n]*") for mark in "\"'`"}
# What stands in brackets is read whole, with its blanks: `[hidden by the mailer]`.
_BARE = Pattern(r"(?:<[^<>\n\"']*>|\[[A-Za-z]+ [^\[\]\n\"']*\]|\([A-Za-z]+ [^()\n\"']*\))[^\s\"'`]*|[^\s\"'`]*")
_LINE = Pattern(r"[^\n]*")
_CDATA = Pattern(r"[^\n\]]*")
_ELEMENT = Pattern(r"(?:[^<\n]|<[^/\n])*")
_LONGEST_DOUBT = 256
_LONGEST_KNOWN = 160
_MOST_KNOWN = 4_096

# What stands before a named value: `DB_PASSWORD=`, `"api_key": "`, `--token `, `<secret>`.
_NAME_STEM = (
    r"(?:pass(?:word|owrd|wrod|wd|phrase|code|wort|w)?|p(?:s?wd|sk|sw|word|w)|pas?w(?:or)?d|pssword|kennwort|senha|contrasena|wachtwoord|passord|salasana|adgangskode|heslo|haslo|parola|secret|token|key"
    r"|(?:api|secret|access|private) key|sess(?:ion)?[_-]?id|connect\.sid|jwt|auth|cred(?:ential)?s?|bearer|pepper|salt|wif"
    # A word of its own: most that begin so are paths and patterns.
    r"|pat(?:\b|[_0-9]|(?-i:[A-Z]))"
    r"|mdp|mot[_-]?de[_-]?passe|palavra[_-]?passe|jelszo|lozinka|geslo|losenord|(?:otp|mfa|secret)[_-]?seed)"
)
_TYPE = r"(?:&'\w+[ \t]+|\[[\w:]*\]const[ \t]+)?(?:&?\[\w+;[ \t]*\w+\]|[\w.&\[\]<>]+)(?:[ \t]*\|[ \t]*[\w.\[\]]+)*"
_ANY_QUOTE = r"[\"'`]"
# The last character of a match is the first of the value: where nothing follows, nothing need be asked.
_HEAD = Pattern(
    # What is given a sign is no option, but a line that a change takes away: `-password = …`.
    rf"(?i)(?:-[\w.-]*?{_NAME_STEM}[\w-]*[ \t]+{_ANY_QUOTE}?[^\s=:]"
    rf"|\b(?:ENV|ARG|setx|setenv|fastcgi_param|set -\w+|config(?:ure)? set(?: --[\w-]+)?)[ \t]+"
    rf"[\w./:-]*?{_NAME_STEM}\w*[ \t]+{_ANY_QUOTE}?\S"
    rf"|\bset[ \t]+[\w-]+[:/][\w./:-]*?{_NAME_STEM}\w*[ \t]+{_ANY_QUOTE}?\S"
    rf"|\bcookie2?{_ANY_QUOTE}?[ \t]*[:=][ \t]*{_ANY_QUOTE}?\S"
    rf"|(?:^|[ \t])(?:-b|--cookie)[ \t=]*{_ANY_QUOTE}?[A-Za-z_][\w.%-]*=\S"
    rf"|[\w.$@-]*?{_NAME_STEM}[\w.-]*"
    rf"(?:(?:[ \t]*(?::[ \t]*{_TYPE}|\{{[\w; ]*\}})[ \t]*(?:=|by[ \t]+lazy[ \t]*\{{)[ \t]*[*&]?[bfru@]{{0,2}}{_ANY_QUOTE}"
    rf"|{_ANY_QUOTE}?:?(?:[ \t]*,\s*|[ \t]*\n[ \t]*){_ANY_QUOTE}?(?:use)?value{_ANY_QUOTE}?[ \t]*:[ \t]*{_ANY_QUOTE}?"
    rf"|{_ANY_QUOTE}[ \t]*\{{(?:\s*\w+[ \t]*=[ \t]*(?:\w+|\"[^\"\n]*\"))*\s*default[ \t]*=[ \t]*{_ANY_QUOTE}"
    rf"|[ \t]*=[ \t]*[\w.]{{1,40}}\([ \t]*{_ANY_QUOTE}[\w.-]{{1,64}}{_ANY_QUOTE}[ \t]*,[ \t]*default[ \t]*=[ \t]*{_ANY_QUOTE}"
    r"|:\s*[|>][+-]?\n[ \t]+"
    r"|[ \t]*[:=][ \t]*[bru]{0,2}(?:\"{3}|'{3})\n[ \t]*"
    rf"|[ \t]+(?:(?:as[ \t]+)?string|\[\]byte|text|varchar)[ \t]*:?=[ \t]*{_ANY_QUOTE}"
    rf"|[ \t]*[:=]?=?[ \t]*%s[\s;]?{_ANY_QUOTE}(?:[ \t,]+[A-Za-z][\w.]*){{0,4}}[ \t,]+{_ANY_QUOTE}"
    rf"|[ \t]*:?=[ \t]*(?:new[ \t]+)?[\w.\[\]]{{1,40}}\([ \t]*[bfru]{{0,2}}{_ANY_QUOTE}"
    rf"|{_ANY_QUOTE}?[\])*]{{0,2}}[ \t]*(?:<{{1,2}}-|:{{1,3}}=|\?=|=>|={{1,3}}|:\*{{0,2}}|\|\|=?|\?\?=?|//=)"
    rf"(?:\s*(?:string\(\d+\)[ \t]*|\(\n\s*|<<|!{{1,2}}(?:sub|base64|unsafe|binary|str)[ \t]+)?"
    rf"[bfrun@$]{{0,2}}{_ANY_QUOTE}{{1,3}}"
    r"|[ \t]*(?:(?:!!|&)\w+[ \t]+)?)"
    rf"|{_ANY_QUOTE}[ \t]*,[ \t]*(?:(?:value|default)[ \t]*[=:][ \t]*)?{_ANY_QUOTE}"
    rf"|\*?[ \t]+(?:(?:is|was|to)[ \t:]+)?{_ANY_QUOTE}"
    rf"|(?:{_ANY_QUOTE}?[\])]{{1,2}})?[ \t]+or[ \t]+{_ANY_QUOTE}"
    rf"|{_ANY_QUOTE}[ \t]+value[ \t]*=[ \t]*{_ANY_QUOTE}"
    rf"|{_ANY_QUOTE}[ \t]*->[ \t]*{_ANY_QUOTE}"
    # What a line gives, shown behind it: `credentials.secret_key_base # => "…"`.
    rf"|{_ANY_QUOTE}?[\])]{{0,2}}[ \t]*(?:#|//|--|;)[ \t]*(?:=>|->)[ \t]*{_ANY_QUOTE}"
    rf"|{_ANY_QUOTE}\n\n"
    rf"|{_ANY_QUOTE}[ \t]*\n\s*:\s*{_ANY_QUOTE}"
    rf"|[({{][ \t]*{_ANY_QUOTE}"
    r"|[ \t]+is[ \t:]+"
    r"|[ \t]+for[ \t]+[\w.@-]+[ \t]*:[ \t]*"
    r"|[ \t]+\|[ \t]+)\S"
    rf"|{_ANY_QUOTE}?>(?:\s*<(?:\w*value|string)>)?(?:<!\[CDATA\[)?[^\s<]))"
)
SIGN = _HEAD.source
_HEAD_PARTS = prepared(
    r"(?is)(?:(env|arg|setx|setenv|fastcgi_param|set -\w+|set(?=[ \t]+[\w-]+[:/])|config(?:ure)? set(?: --[\w-]+)?)"
    r"[ \t]+(?:[\w./:-]*[/:])?)?"
    r"((?:(?:api|secret|access|private) (?=key))?[\w.$@-]*)(.*)"
)
# The ways of giving a value that are not a sign between the two.
# What a manifest notes so that its pods begin anew: `checksum/secret: …`.
_DIGEST_OF = prepared(r"(?i)(?:checksum|hash|digest|sha\d*|sum|fingerprint|revision|version)/$")
_ROUNDABOUT = prepared(r"(?i)%s|value|default|string\(|[|>][+-]?\n|^\n\n$|^\|\|$|^\?\?$|^\s+or\s*$")
_LONGEST_HEAD = 480
_LONGEST_CAMEL = 16
_CALLED = prepared(r"=[ \t]*(?:new[ \t]+)?[\w.\[\]]+\(")
_COOKIES = prepared(r"[ \t]?(?:-b|--cookie)[ \t=]*[\"'`]?")
_FORMAT = prepared(r"(?i)[^a-z](?:f|fr|rf)[\"']{1,3}$")
_BINDING = prepared(r"(?:^|\s)(?:[#\[(:]|(?:@|v-|bind|on)[\w-]*:)$")
_EXPRESSION = prepared(r"[A-Za-z_.$!?:&|=+() \t-]+[\"']")
_DIRECTIVE = prepared(r"[a-z]+(?:[A-Z][a-z]+)+[\"']")
_LONG_QUOTE = prepared(r"([\"'])\1\1\n[ \t]*$")
# A quote with letters right behind it is one of the value's own characters.
_SPILLED = prepared(r"[\"'`]([A-Za-z0-9][^\s\"'`,;)\]}]*)")
_IN_ELEMENT = prepared(r"(?<=[\"'])>\s*<\w+>$")
_TAG = prepared(r"(?:!!|&)\w+[ \t]+$")
_ANCHOR = prepared(r"&\w+[ \t]+$")
_SHOWN = prepared(r"(?:#|//|--|;)[ \t]*(?:=>|->)")
_OPENED = prepared(r"(?i)(?:\(\s*|<<|!\w+[ \t]+)(?=[bfrun]{0,2}[\"'`]+$)")
# What turns a text into bytes or hides it from a log is no call that fetches it.
_CONVERTED = prepared(
    r"(?i)=[ \t]*(?:new[ \t]+)?(?:\[\]byte|bytes(?:\.fromhex)?|bytearray|buffer\.from|string(?:::from)?|str|secret_?str|secret"
    r"|some|just|\w*\.?(?:b64decode|unhexlify|fromhex|atob))\("
)
_DOUBLED = prepared(r"([\"'])\1(?=[A-Za-z0-9])")
_ESCAPED_REST = {quote: prepared(rf"\n[^\s{quote}]{{0,64}}(?={quote}(?:[,;)\]}}\s]|$))") for quote in "\"'`"}
_WORDS_BEHIND = prepared(r"((?: [^\W_]+[!?.]?){1,8})[ \t]*(?:\n|$)")
_ARROW = prepared(r"[\"'`)]{0,2}[ \t]*(?:->|=>|→|to)[ \t]*([\"'`])")
_MOST_LINES = 40
_BLOCK = prepared(r"[|>][+-]?\n[ \t]+$")


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
    # Behind an anchor a plain word may be a type: only what is random counts, as it does where the name alone is quoted.
    is_anchored = bool(_ANCHOR.search(tie))
    tie = _IN_ELEMENT.sub(">", tie)
    tie = _TAG.sub("", _LONG_QUOTE.sub(r"\1", tie.removesuffix("<![CDATA[")))
    kind = kind_of(name.rstrip(".-")) or ("key" if name.lower() == "key" else None)
    if kind is None:
        return None
    quote = tie[-1] if tie and tie[-1] in "\"'`" else ""
    marks = len(tie) - len(tie.rstrip("\"'`"))
    bare = _SHOWN.sub("=", _OPENED.sub("", tie)).strip("\"'`[]()bfrunBFRUN@$*")
    is_given = bool(_ROUNDABOUT.search(bare))
    is_set = bool(setter) or name.startswith("-")
    is_quoted = is_anchored or (tie[:1] in ('"', "'", "`") and not is_given)
    if "->" in bare:
        if kind != "password":
            # Between other names an arrow leads from one to the next.
            return None
        bare = bare.replace("->", "=>")
    # A makefile's `?=` and `::=` assign as `=` does.
    tie_sign = "=" if bare.strip() in ("?=", "::=", ":::=", "<-", "<<-", "||=", "??=", "//=") else bare.strip().lower()
    if not is_given and _CALLED.search(tie):
        tie_sign = "=" if _CONVERTED.search(tie) else "call"
    sign, is_spaced, is_format = ":" if is_given else tie_sign, bare[:1].isspace(), bool(_FORMAT.search(tie))
    return Head(kind, name, sign, quote, marks, is_spaced, is_quoted, is_set, is_format, is_tight=bare == sign)


class _Verdict(NamedTuple):
    """How much of a value is a secret, and of which kind."""

    length: int = 0
    kind: str = ""


def find(view: View) -> Iterator[Found]:
    """Find every value that its name gives away."""
    text, data, position = view.text, view.data, 0
    size = len(data)
    # The memory of values lasts for one text: secrets must not linger in the process.
    known: dict[tuple[str, bool, str], _Verdict] = {}
    while span := _HEAD.find(data, position):
        start, position = span[0], span[1] - 1
        if text[start] in "cC" and cookies.is_header(text, start):
            yield from cookies.find_in_line(view, position)
            position = max(cookies.line_end(view, position), span[1])
            continue
        if text[start] in " \t-" and (given := _COOKIES.match(text, start, position)):
            yield from cookies.find_in_line(view, given.end())
            continue
        head = _head_at(text, start, position)
        if head is None:
            continue
        if head.marks == 2:
            position, head = _where_quoted(view, head, position)
        reader = _reader_behind(text, start, position)
        end = _value_end(view, reader, position, min(size, position + _LONGEST_DOUBT))
        if head.marks == 3:
            end = _long_end(text, head.quote * 3, position, end)
        if reader is _ELEMENT and text[end : end + 2] != "</":
            continue
        if spilled := _spilled_end(head, text, position, end):
            yield Found(position - 1, spilled, head.kind)
            position = spilled
            continue
        yield from _changed_to(view, head, end)
        verdict = _of_line(head, text, start, position, end) or _known_verdict(known, head, text, start, position, end)
        if not verdict.length:
            continue
        end = position + verdict.length
        if verdict.length == _LONGEST_DOUBT:
            end = reader.end_at(data, position, size)
        elif not head.quote:
            end = _block_end(text, position, end) if reader is _LINE else _phrase_end(head, text, start, end)
        yield Found(position, end, verdict.kind)
        position = end


def _changed_to(view: View, head: Head, end: int) -> Iterator[Found]:
    """Find what a plan or a log turns a named value into: `password = "…" -> "…"`."""
    arrow = _ARROW.match(view.text, end) if head.quote or view.text[end : end + 1] == " " else None
    # Behind a comma the arrow is that of the next pair.
    if not arrow or head.tie == ",":
        return
    start = arrow.end()
    last = _value_end(view, _reader(arrow[1]), start, min(len(view.data), start + _LONGEST_DOUBT))
    changed = head._replace(quote=arrow[1], marks=1)
    verdict = _judge(changed, view.text[start:last], view.text[last : last + 3], False, "") if last > start else _Verdict()
    if verdict.length:
        yield Found(start, start + verdict.length, verdict.kind)


def _where_quoted(view: View, head: Head, position: int) -> tuple[int, Head]:
    """Tell where the value begins behind two quotes, which open it together only when they are alike."""
    first, second = view.text[position - 2], view.text[position - 1]
    if first != second:
        # The first opens the value, and the second is its first character.
        return position - 1, head._replace(quote=first, marks=1)
    if view.width(position - 1) != view.width(position - 2):
        return position, head._replace(marks=1)
    return position, head


def _reader_behind(text: str, start: int, position: int) -> Pattern:
    """Choose what reads the value behind a head, by how the head ends."""
    if text.endswith("<![CDATA[", start, position):
        return _CDATA
    return _LINE if _BLOCK.search(text, start, position) else _reader(text[position - 1])


def _head_at(text: str, start: int, place: int) -> Head | None:
    """Take the head at a place apart; None if it announces nothing there."""
    if not text[start:place].isascii() and _IS_WORDY.search(text, start, place):
        # Words of another language stand between the name and what would be its value.
        return None
    head = read_head(text[start:place])
    if head is None or _is_no_assignment(text, start, place):
        return None
    if (head.tie == ":" or (head.tie == "=" and head.is_spaced)) and head.name[:1] == "-" and head.name[1:2] != "-":
        # No option, but a line that a change takes away.
        return head._replace(name=head.name[1:], is_set=False)
    if head.tie in ("=", "==") and head.is_tight and _ends_base64(text, start, head.name):
        return None
    if head.name in ("key", "Key") and (head.tie != "=" or head.is_quoted):
        return head._replace(name="signing_key") if sections.is_of_signing(text, start) else None
    return head


def _ends_base64(text: str, start: int, name: str) -> bool:
    """Tell whether a name is only how something in base64 ends, and the signs behind it are its padding: `…+bQz5HyPw==,x`."""
    return (len(name) > _LONGEST_CAMEL or text[start - 1 : start] in ("+", "/")) and values.is_jumble(name[-64:])


def _is_set_in_line(head: Head, line: str) -> bool:
    """Tell whether a line of words is a setting's: a name in small letters has a number among them that is no message's."""
    return (head.is_setting and head.tie == "=") or phrases.is_bare_phrase(line)


def _of_line(head: Head, text: str, start: int, place: int, end: int) -> _Verdict | None:
    """Judge an unquoted value together with the words behind it: a phrase, or a message; None if it is neither."""
    if head.quote or text[end : end + 1] != " " or head.tie not in ("=", ":") or head.is_spaced or not _starts_line(text, start):
        return None
    line = phrases.rest_of_line(text, place, end)
    if not head.name.isupper() and phrases.is_sentence(line):
        return _Verdict() if head.tie == "=" else None
    if head.kind in ("password", "secret") and phrases.is_set_phrase(line) and _is_set_in_line(head, line):
        return _Verdict(len(line), head.kind)
    return None


def _reader(before: str) -> Pattern:
    """Give what reads a value, by the character before it."""
    return _ELEMENT if before == ">" else _QUOTED.get(before, _BARE)


def _value_end(view: View, reader: Pattern, start: int, limit: int) -> int:
    """Give the end of a value: the quote that is escaped as its first one is, not one that is escaped within it."""
    end, quote, opening = reader.end_at(view.data, start, limit), view.text[start - 1], view.width(start - 1)
    while quote in _QUOTED and end < limit:
        if view.text[end : end + 1] == quote and _is_within(view.width(end), opening):
            end = reader.end_at(view.data, end + 1, limit)
        elif quote == "'" and opening == 1 and view.text.startswith("'''", end) and view.width(end + 1) == 2:
            # A shell's way to write one within: it ends the quote, has one escaped, and begins the next.
            end = reader.end_at(view.data, end + 3, limit)
        elif quote == "'" and opening == 1 and view.text.startswith("'\"'\"'", end):
            end = reader.end_at(view.data, end + 5, limit)
        elif end > start and (doubled := _DOUBLED.match(view.text, end)) and doubled[1] == quote and opening == 1:
            end = reader.end_at(view.data, doubled.end(), limit)
        elif _is_escaped_break(view, start, end) and (rest := _ESCAPED_REST[quote].match(view.text, end)):
            end = rest.end()
        else:
            break
    return end


def _is_escaped_break(view: View, start: int, end: int) -> bool:
    """Tell whether a line ends by an escape in a value: by two of them, or by one where bytes are written: `b'_5#y2L\\n'`."""
    widest = 1 if view.text[start - 2 : start - 1] == "b" else 2
    return view.text[end : end + 1] == "\n" and view.width(end) > widest


def _long_end(text: str, quotes: str, start: int, end: int) -> int:
    """Give the end of a value between three quotes, which may hold one."""
    last = text.find(quotes, start, start + _LONGEST_DOUBT)
    return last if last > end and "\n" not in text[start:last] else end


def _block_end(text: str, start: int, end: int) -> int:
    """Give the end of a block that has further lines, each indented as its first."""
    indent = text[text.rfind("\n", 0, start) + 1 : start]
    for _ in range(_MOST_LINES):
        if not text.startswith(indent, end + 1) or text[end + 1 + len(indent) : end + 2 + len(indent)].strip() == "":
            break
        end = text.find("\n", end + 1) % (len(text) + 1)
    return end


def _phrase_end(head: Head, text: str, start: int, end: int) -> int:
    """Give the end of a setting that goes on with words to the end of its line; a command has options or paths among them."""
    if head.tie != "=" or head.is_spaced or text[end : end + 1] != " " or not _starts_line(text, start):
        return end
    words = _WORDS_BEHIND.match(text, end)
    if not words or not ("phrase" in head.name.lower() or (head.is_setting and STOP_WORDS.intersection(words[1].split()))):
        return end
    return words.end(1)


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
            if text[start - 3 : start] == "://" or text[start - 2 : start] == "</" or "," in text[start:place]:
                return True
            return bool(_DIGEST_OF.search(text, max(0, start - 24), start))
        case "{":
            return text[start - 2 : start] == "${" and text[place] in "?+" and "." not in text[start:place]
        case "-" if text[start : start + 3].lower() == "env":
            # A variable that is handed on by its name: `--env DB_PASSWORD image`.
            return True
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


def _known_verdict(
    known: dict[tuple[str, bool, str], _Verdict], head: Head, text: str, start: int, place: int, end: int
) -> _Verdict:
    """Judge a value by its name, remembering the short ones seen before."""
    source = (
        text[start : end + 3],
        not head.quote and _starts_line(text, start),
        "" if head.quote else _field_sign(head, text, start, end),
    )
    verdict = known.get(source)
    if verdict is None:
        verdict = _judge(head, text[place:end], text[end : end + 3], source[1], source[2])
        if len(source[0]) <= _LONGEST_KNOWN:
            if len(known) >= _MOST_KNOWN:
                known.clear()
            known[source] = verdict
    return verdict


def _field_sign(head: Head, text: str, start: int, end: int) -> str:
    """Give the sign before a name that is a field of an address's query, or of a connection with something odd in its value."""
    before = text[start - 1 : start]
    # What a program asks stands before a colon: `user.token?user.token:null`.
    if head.tie == "=" and (before == "?" or (before == "&" and text[start - 2 : start - 1] != "&")):
        return before
    if before == " " and text[start - 2 : start - 1] == ";":
        before = ";"
    is_connection = before == ";" and head.name.isalpha() and "=" in text[max(0, start - 64) : start]
    return before if is_connection and (head.name[0].isupper() or _ODD.search(text, start, end)) else ""


def _judge(head: Head, value: str, after: str, starts_line: bool, field: str) -> _Verdict:
    if (marker := value.find("[redacted:")) >= 0:
        value, after = value[:marker], "[re"
    if not head.quote and head.tie != ">":
        is_line = starts_line and after[:1] in ("", "\n", "\r")
        whole, value = value, _of_field(field, value) if field else _trimmed(head, value, is_line=is_line)
        after = (whole[len(value) :] + after)[:3]
    if not head.quote and after[:1] == "<" and after[1:2].isupper() and value.isidentifier():
        # What is called has a type between its name and its bracket.
        return _Verdict()
    if not head.quote and value[-1:] == "?" and value[:-1].isalpha() and value.islower():
        # Somebody asks whether it is so.
        return _Verdict()
    if value[:1] == "," and _NEXT_IN_LINE.match(value):
        # Nothing was given, and the next field begins.
        return _Verdict()
    if value and is_secret(head, value, after, starts_line=starts_line, is_field=bool(field)):
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
_NEXT_IN_LINE = prepared(rf"{_NEXT_PARAMETER}|[,;][A-Za-z][\w.]*=")
_NEXT_IN_SETTING = prepared(_NEXT_FIELD + r"|[,;][\w.-]+[=:]")
_NEXT_IN_CONNECTION = prepared(r";[A-Z][A-Za-z]+(?:=|$)")
_NEXT_OF_QUERY = prepared(r"&|;[A-Za-z][\w ]*=|;$|#[A-Za-z/]+$|</")
_NEXT_OF_CONNECTION = prepared(r";[A-Za-z][\w ]*(?:=|$)|;$|</")
_ODD = prepared(r"[\d!@#$%^*+~]")
_IS_WORDY = prepared(r"[ \t][\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+$")
_FIRST_PART = prepared(r"[^,;(){}\[\]]+")
_NAMED_PART = prepared(r"[\w.-]*[=:(]")
_NEXT_IN_CODE = prepared(_NEXT_FIELD + "|[,;]")


def _cut(head: Head, value: str, *, is_line: bool) -> int:
    """Give the place in a bare value where the next field, command or tag begins."""
    if is_line:
        cut = _NEXT_IN_LINE.search(value, 1) if head.tie == "=" else None
    elif not (cut := _NEXT_IN_CONNECTION.search(value, 1)):
        cut = (_NEXT_IN_SETTING if head.name.isupper() else _NEXT_IN_CODE).search(value, 1)
        while cut and cut[0] in (",", ";") and _goes_on(value, cut.start()):
            cut = _NEXT_IN_CODE.search(value, cut.end())
    return cut.start() if cut else len(value)


def _goes_on(value: str, place: int) -> bool:
    """Tell whether a value has a sign in its middle that ends others: what is behind it is neither a name nor a number."""
    rest = _FIRST_PART.match(value, place + 1)
    return rest is not None and values.is_told(rest[0]) and not _NAMED_PART.match(value, place + 1)


def _of_field(sign: str, value: str) -> str:
    """End the value of a field where the next field begins, or the text around the address goes on."""
    cut = (_NEXT_OF_CONNECTION if sign == ";" else _NEXT_OF_QUERY).search(value, 1)
    value = value[: cut.start()] if cut else value
    while value and value[-1] in ")]},;:.\\>" and not _opens(value):
        value = value[:-1]
    return value


def _opens(value: str) -> bool:
    pairs = {")": "(", "]": "[", "}": "{", ">": "<"}
    opener = pairs.get(value[-1])
    return opener is not None and opener in value
