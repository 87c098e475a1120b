"""Decides whether a named value is a secret: by its name, how the two are tied, and what the value looks like."""

from typing import NamedTuple

from decklog.prepared import prepared
from decklog.redact import expressions, lookalikes, phrases, values

_DOUBTFUL = ("key", "credential", "auth")
_VERBS = ("auth", "pat", "key")
_PASSING = ("pass", "pw")
_LONG_KEY = 32
_LONGEST_KIND = 24
_LONG_WORD = 24
# A command in brackets, and the fields of an option that says where a secret is.
_OF_COMMAND = prepared(r"\([A-Z][a-z]+-[A-Z]\w+|(?:id|type|name|src|source|target|env|file)=")
_RESOURCE = prepared(r"[a-z]{2,}(?:-[a-z]{2,})+\d?")
# Which of several things of one name is meant: `db-password-2`.
_EDITION = prepared(r"(?<=[a-z]{2})-v?\d{1,2}$")
_COUNTED = prepared(r"[a-z]+\d{1,4}")
_REDIRECTING = frozenset("<>|&;")
_NEXT_OPTION = prepared(r"--[a-z][a-z-]+(?:=\S*)?")
_ALIAS = prepared(r"\*[a-z]+\d{0,3}")
_PLAIN_NAMES = ("password", "passphrase", "pass", "pwd", "pw")
_KEY_ID = prepared(r"(?:0x)?(?:[0-9A-Fa-f]{8}|[0-9A-Fa-f]{16}|[0-9A-F]{40})!?")
_ERROR_CODE = prepared(r"[A-Z]{2,8}[-_]?\d{3,5}")
_RANGE = prepared(r"\d{1,3}-\d{1,4}")
# What names have little of: small letters by ones and twos between capitals by three and more.
_FEW_SMALL, _MANY_CAPITALS = prepared(r"(?<=[A-Z])[a-z]{1,2}(?=[A-Z])"), prepared(r"[A-Z]{3,}")
_QUOTED_WITHIN = prepared(r"[\"'`][A-Za-z0-9][^\s+]*[A-Za-z0-9]|[\"'`][A-Za-z0-9][^\s+]*[A-Za-z0-9][\"'`]?")

# A command that a pipe leads to, and what a style sheet says of an element that has the name.
_IN_PROGRAMS = prepared(
    r"(?:undefined|null|None|nil|never|string|str|bytes|number|boolean|unknown|any|void|Error)\b[\w<>\[\](){};,.?]*$"
    r"|[A-Z][a-z]+(?:[A-Z][a-z]+)?-[A-Z](?:\w*[A-Za-z_])?\d?(?!\w)|(?:focus|hover|active|disabled|checked|invalid|valid|required|not)[-\w]*[({:]"
)


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
    is_tight: bool

    @property
    def is_setting(self) -> bool:
        """Tell whether no program is written like this: `DB_PASSWORD=x`, `ENV DB_PASSWORD x`, `--password x`."""
        return self.is_set or (self.tie == "=" and not self.is_spaced and self.name.isupper())


def is_secret(head: Head, value: str, after: str, *, starts_line: bool, is_field: bool = False) -> bool:
    """Decide whether a named value is a secret, given what follows it and where its name stands.

    A name may start the line, or be the field of an address or of a connection.
    """
    following, after = after, after[:1]
    if not head.quote and (_REDIRECTING.issuperset(value) or (head.tie == ":" and _ALIAS.fullmatch(value))):
        # The value is read from a file, or stands elsewhere in the document.
        return False
    if head.is_set and head.tie == "" and _NEXT_OPTION.fullmatch(value):
        # The one before it takes nothing: `--ask-password --user=ana`.
        return False
    if head.name.lower().endswith("signingkey") and _KEY_ID.fullmatch(value):
        # By which git knows the key to sign with.
        return False
    is_jumble = values.is_jumble(value) and not values.is_example(value)
    if not is_jumble and values.is_harmless(value) and not _is_meant(head, value):
        return False
    if (head.is_format and "{" in value) or _is_label(head, value) or values.is_public(value):
        return False
    if (after in ("", "\n", "\r") and _is_joined_phrase(head, value)) or (after != "(" and _is_word_phrase(head, value)):
        return True
    if head.name.lower() == "key":
        return head.tie == "=" and not head.is_quoted and values.is_mixed_key(value) and after in ("", "\n", "\r", head.quote)
    if head.quote:
        return _is_opened(head, value, following) and _quoted_is_secret(head, value)
    if after == "(" or (after == "[" and following != "[re") or following == "...":
        return False
    if head.tie == ">":
        is_odd = not head.is_quoted or (_has_oddity(value) and " " not in value)
        return is_jumble or (is_odd and _quoted_is_secret(head, value))
    if head.name == "PASS" and head.tie == ":" and (value.startswith("Test") or not values.is_told(value)):
        # What a runner of tests prints for one that passed.
        return False
    if is_field and _is_field_value(head, value):
        return True
    is_whole_line = starts_line and after in ("", "\n", "\r")
    if not is_jumble and _is_program(head, value, after) and not (is_whole_line and _is_line_setting(head, value)):
        return False
    return (is_jumble and bool(head.tie or head.is_set)) or _bare_is_secret(head, value, after, starts_line)


def _is_joined_phrase(head: Head, value: str) -> bool:
    """Tell whether words that are joined are the phrase which a setting is called: `wpa_passphrase=…`."""
    if head.kind != "password" or head.quote or head.is_spaced or "." in value or not lookalikes.is_joined_phrase(value):
        return False
    return (head.tie == "=" and "phrase" in head.name.lower()) or (head.tie == ":" and head.name.lower() in _PLAIN_NAMES)


def _is_word_phrase(head: Head, value: str) -> bool:
    """Tell whether plain words that are joined are what a password, a secret or a key is set to: names have other words."""
    if head.is_set and head.tie == "" and head.kind == "password":
        return "." not in value and lookalikes.is_word_phrase(value)
    if head.tie == "," and head.quote and head.kind == "password":
        return lookalikes.is_word_phrase(value)
    if head.tie not in ("=", ":", "=>") or head.kind not in ("password", "secret", "api-key", "token"):
        return False
    # Without quotes a manifest names the secret that it means; no expression takes so many words from each other.
    is_given = bool(head.quote) or head.kind == "password" or head.is_setting or head.name.isupper() or head.tie == "="
    is_dotted = "." in value and not head.quote
    if is_dotted and not (head.kind == "password" and head.tie == ":" and lookalikes.is_dotted_words(value)):
        return False
    return is_given and lookalikes.is_word_phrase(value)


def _is_label(head: Head, value: str) -> bool:
    if values.is_label(head.name, value) or (lookalikes.is_asking(head.name) and not _is_answered(value)):
        return True
    return not head.is_setting and head.tie in (":", "=", "=>") and phrases.is_label(value)


def _is_answered(value: str) -> bool:
    """Tell whether a value is no word of a label in any language, whatever it is called: `reset_password: Vq7!lopp`."""
    is_odd = values.looks_random(value) or (values.is_told(value) and not _COUNTED.fullmatch(value))
    return value.isascii() and value[-1:] != "?" and is_odd


def _is_program(head: Head, value: str, after: str) -> bool:
    """Tell whether a bare value is an expression of a program or the beginning of a table."""
    if value[:2] in ("{}", "[]", "()") or (head.is_set and _OF_COMMAND.match(value)):
        return True
    if head.tie in ("|", ":") and _IN_PROGRAMS.match(value):
        return True
    if head.tie == "=" and (_is_given_by_page(value) or _is_minified(head, value)):
        return True
    if value[0] in "{[" and after == ":" and value[1:].replace("-", "_").isidentifier():
        return True
    if not expressions.is_code(value, after) or (head.is_setting and not expressions.is_reference(value)):
        return False
    if head.kind == "password" and after in ("", "\n", "\r") and head.tie == ":" and _mixes_all(value):
        return False
    return not (head.kind == "password" and after in ("", "\n", "\r", " ") and values.is_capped(value))


def _is_given_by_page(value: str) -> bool:
    """Tell whether a value is what a template of a page is given: `token={token ?? undefined}`, `token={user?.token}>`."""
    inner = value[1:].rstrip("}>/!")
    is_expression = value[0] == "{" and (expressions.is_chain(inner) or expressions.is_code(inner, "}"))
    return is_expression and not values.looks_random(inner)


def _is_minified(head: Head, value: str) -> bool:
    """Tell whether a program without long names sets a field: `t.password=r`."""
    return len(value) < 3 and value.isalpha() and head.name.find(".") in (1, 4) and not head.is_spaced


def _is_line_setting(head: Head, value: str) -> bool:
    """Tell whether a value that reads as an expression has a line of its own in a file of settings: `password: Vq7.lopp!`."""
    if head.tie not in (":", "=") or (head.kind != "password" and head.is_spaced):
        return False
    if head.kind == "password" and head.tie == ":" and head.name[0].isupper() and values.is_dotted(value):
        return True
    return head.kind in ("password", "secret", "token") and expressions.is_set_alone(value)


def _is_field_value(head: Head, value: str) -> bool:
    """Tell whether the value of a field is no expression: nothing in an address or a connection is one."""
    return head.kind in ("password", "secret") and len(value) >= 4 and not expressions.is_field_name(value)


def _is_meant(head: Head, value: str) -> bool:
    """Tell whether a value that looks harmless is the secret that its name says it is."""
    if head.kind == "password" and _is_phrase(head, value):
        return True
    if head.is_setting and head.quote and " " in value and values.has_told_word(value):
        return True
    if not head.quote or head.tie not in ("=", ":", "=>", "{") or head.kind not in ("password", "secret", "token"):
        return False
    return " " not in value and lookalikes.is_meant(value)


def _is_phrase(head: Head, value: str) -> bool:
    if values.is_passphrase(value) or (bool(head.quote) and head.tie in ("=", ":", "=>") and values.is_told_phrase(value)):
        return True
    if head.quote and head.tie in ("=", ":", "=>") and phrases.is_named_phrase(value):
        return True
    names_phrase = head.is_setting or "phrase" in head.name.lower()
    return names_phrase and (head.tie in ("=", ":") or head.is_set) and lookalikes.is_phrase(value)


def _is_opened(head: Head, value: str, following: str) -> bool:
    """Tell whether the quote before a value opens it, rather than closing what came before."""
    after = following[:1]
    if value[0] in "\"'`":
        return after == head.quote and head.tie in ("=", ":", "=>") and bool(_QUOTED_WITHIN.fullmatch(value))
    if head.marks == 2 or (head.marks == 3 and following != head.quote * 3):
        return False
    if (following[1:2] == ":" and head.tie == ":") or (head.quote == "`" and " " in value):
        return False
    if head.is_quoted:
        return True
    if after != head.quote and not (value[0].isalnum() and _mixes(value) and " " not in value):
        return False
    if value[0] in " ),;:]}":
        is_odd = expressions.has_many_signs(value) or values.is_told(value[1:])
        return value[0] != " " and (is_odd or (head.tie in ("=", ":") and lookalikes.is_closed_first(value)))
    return not (value[0] == "+" and expressions.is_code(value[1:].strip("+ "), ""))


def _quoted_is_secret(head: Head, value: str) -> bool:
    if head.kind == "session":
        return values.is_session_id(value)
    if values.is_assembly_token(head.name, value):
        return False
    if head.tie == "call":
        # Most calls take the name of a secret and give the secret back.
        return values.looks_random(value) and not expressions.is_field_name(value)
    if (head.tie == "" and not head.is_set) or head.tie.startswith(("is", "was", "to", "for", ",", "==")):
        # Words that merely stand near each other: only a value that is no word counts.
        if " " in value:
            return head.kind in ("password", "secret") and not head.tie.startswith("==") and phrases.is_odd_phrase(value)
        if head.name.lower() in _PASSING:
            return values.is_told(value)
        if head.kind == "password":
            is_odd = _has_oddity(value) or values.is_odd_word(value)
        else:
            is_odd = values.is_random_or_odd(value) and head.kind not in _DOUBTFUL
        return is_odd and len(value) >= 4 and head.name.lower() not in _VERBS
    if head.kind == "password":
        return not expressions.is_field_name(value)
    if expressions.is_field_name(value):
        return False
    if head.kind in _DOUBTFUL:
        return _doubtful_is_secret(head, value)
    if len(value) < 4 or (" " in value and head.kind != "secret"):
        return values.looks_random(value) and " " in value
    if head.kind == "token" and value.isupper() and value.isalpha() and not phrases.is_unspoken(value.lower(), least=1):
        # What a lexer calls a word.
        return len(value) >= _LONGEST_KIND
    if head.kind == "api-key" and value.istitle() and value.isalpha():
        return False
    if values.is_word(value) and head.kind == "secret" and lookalikes.is_worded(value):
        return True
    if head.is_quoted and head.tie in (":", "=>"):
        return not (values.is_word(value) and len(value) < 24 and not value.isalpha())
    if values.is_word(value):
        return values.is_odd_word(value) or (value.isalpha() and len(value) >= (8 if head.kind == "secret" else 16))
    return (len(value) >= 6 and _mixes(value)) or value.isdigit()


def _doubtful_is_secret(head: Head, value: str) -> bool:
    if head.is_setting and values.has_told_word(value):
        return True
    if head.kind == "key" and values.is_entry_key(value):
        return False
    is_random = values.looks_random(value) or (len(value) >= _LONG_KEY and expressions.has_many_signs(value))
    return is_random and not values.is_place(value)


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
    if head.kind in _DOUBTFUL or (head.kind == "token" and head.tie == ":" and _ERROR_CODE.fullmatch(value)):
        return False
    if head.tie in ("|", "is") or head.tie.startswith("for"):
        is_odd = _has_oddity(value) or (len(value) >= 8 and value.isalpha() and not expressions.is_identifier(value))
        return is_odd and len(value) >= 6
    if head.kind == "password":
        return _bare_password(head, value, after, starts_line)
    if head.is_set and values.is_word(_EDITION.sub("", value)) and not values.is_odd_word(value):
        # An option names the secret that is meant: `--secret=db-pass`.
        return False
    if head.is_set and values.is_odd_word(value):
        return True
    if head.tie == "=" and not head.is_spaced:
        is_long = len(value) >= 6 or lookalikes.is_leet(value)
        return (_mixes(value) and is_long) or (len(value) >= 16 and value.isalnum()) or values.is_odd_word(value)
    if head.kind == "secret" and starts_line and after in ("", "\n") and value.isalpha() and len(value) >= _LONG_WORD:
        return True
    is_name = values.is_type_name(value) or bool(_RESOURCE.fullmatch(value))
    return len(value) >= 8 and any(map(str.isdigit, value)) and _mixes(value) and not is_name


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
        return not expressions.is_field_name(value)
    if head.tie == "=" and not head.is_spaced:
        return after not in (",", ")", ";", ".", "]", "}") and not any(mark in value for mark in "_.")
    if head.tie != ":":
        return False
    if after in ("", "\n") and (values.is_odd_word(value) or (starts_line and _is_jumbled_word(value))):
        return True
    if head.name[0].isupper() and ((head.is_tight and value.isalnum() and after in (" ", "}")) or values.is_dotted(value)):
        return not value.isupper()
    return after in ("", "\n") and value.islower() and value.isalpha() and len(value) >= 6 and starts_line


def _is_jumbled_word(value: str) -> bool:
    """Tell whether letters are mixed as in no word and no name: `ZqTmLTKnlQw`."""
    if len(value) < 12 or not value.isalpha() or not value.isascii():
        return False
    if not expressions.is_identifier(value):
        return True
    return len(_FEW_SMALL.findall(value)) > 1 and len(_MANY_CAPITALS.findall(value)) > 1


def _mixes(value: str) -> bool:
    """Tell whether a value has both letters and something else."""
    return any(map(str.isalpha, value)) and not value.replace("_", "").isalpha()


def _mixes_all(value: str) -> bool:
    """Tell whether a value has capitals, small letters, numbers and two kinds of signs, as no expression has."""
    signs = {char for char in value if not char.isalnum()}
    return (
        len(signs) > 1
        and all(any(map(kind, value)) for kind in (str.isupper, str.islower, str.isdigit))
        and signs.isdisjoint("()[]{}=/")
    )


def _has_oddity(value: str) -> bool:
    """Tell whether a value has a digit or a sign that names do not have."""
    return any(char.isdigit() or not (char.isalpha() or char in "-_./:") for char in value) and any(map(str.isalnum, value))
