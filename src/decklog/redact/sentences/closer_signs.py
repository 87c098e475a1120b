"""What a text has in which something told is found, by the way in which it is told: few have it that have a word which opens one.

A matcher whose tables are made beforehand looks for all of it at once. Each sign is that of a part of `told.find`, and says yes
to whatever that part finds something in: it is made of what the part itself matches, without what is asked of a value besides.
"""

from decklog.redact.patterns.in_bytes import in_bytes
from decklog.redact.patterns.together import parts
from decklog.redact.sentences import accounts, answers, codes, comments, languages, next_lines, told
from decklog.redact.sentences.tellings import TELLINGS

_OPENINGS = (
    languages.WORDS,
    *(rf"\b(?:{opening})" for opening in told.OPENINGS),
    # By parts: with all that may follow, one of them would be too large.
    *(rf"\b(?:{part})" for part in parts(next_lines.ANNOUNCING, 300)),
    rf"\b(?:{accounts.HEADING})",
)
_ODD = "[0-9!#$%^&*+~]"
_END = r"(?:\n|$)"
# No line of code: such a line heads no table.
_PLAIN = r"[^\n(){}=<>\[\]]*"
# The openings below which a phrase is looked at.
_KEEPING = "(?i:secret|pass|op rea|bw get|rbw ge)"


def _opened(rest: str) -> str:
    """Give what begins with any opening, each by itself: all in one bracket would be too large a pattern."""
    return "|".join(f"(?i:{opening}){rest}" for opening in _OPENINGS)


def _below() -> str:
    """Give what stands below a line: a word with a number or a sign in it, one of joined words, or the value of something."""
    prefix = in_bytes(next_lines.PREFIX).replace("|$", "|")
    part = r"[a-z?\x80-\xff]{3,12}"
    joined = rf"{part}(?:[-_.]{part}){{3}}[^\s\"']*"
    token = rf"[ \t\n]*(?:{in_bytes(next_lines.SHOWING)})?[\"'`]?(?:[^\s\"']*{_ODD}[^\s\"']*|{joined})[\"']?[ \t]*{_END}"
    value = r"\W*(?i:(?:(?:the|new|your|its)[ \t]+)?value(?:[ \t]*[:=]|[ \t]+is))"
    return _opened(rf"[^\n]*\n(?:{prefix}\n?)?(?:{prefix}\n?)?(?:{value}|{token})")


def _tables() -> str:
    """Give what begins a table: a head, and below it a row or a rule."""
    # No name of a column has a sign that may be between two, nor a colon.
    name, rule = r"(?:[^\n(){}=<>\[\];:,]|\",+)*\n\n?", r"[ \t|+:=?-]+(?:\n|$)"
    drawn = rf"[^\n]*\||[^\n]*\S[ \t]*\t|[ \t]*[^\s][^\n]*  [^\n]*\S|{rule}"
    listed = (
        r"(?:[^\n]*[^\s,;]S[^\s,;]|[^\n]*S[^\n]*(?:[|\t]|  [^\n]*\S)|[^\n]*[|\t][^\n]*S|[ \t]*[^\s][^\n]*  [^\n]*S"
        r"|[ \t]*[^ \n]*S[^ \n]*[ \t]*(?:\n|$))"
    )
    return "|".join(
        (
            _opened(f"{name}(?:{drawn})"),
            _opened(rf"[^\n(){{}}=<>\[\];:|\t]*\n\n?(?:{listed.replace('S', ',')}|{rule})"),
            _opened(rf"[^\n(){{}}=<>\[\]:,|\t]*\n\n?(?:{listed.replace('S', ';')}|{rule})"),
            # Keys below a tab, a comment that says what lines with colons have, and heads of a wiki, a page and a sheet.
            rf"[^\s][ \t]*\t{_PLAIN}\n\n?[ \t]*[^ \n]+[ \t]*{_END}",
            r"#[# \t]*[^ \t\n]*:[^ \t\n]*[ \t]*\n|<th|![^\n]*!!|[A-Z]1=\S",
            # The rows of a dump, and a question that alone says what the columns are.
            r"(?i:from stdin)|(?i:select )[^\n]*\n\|",
            _beside_phrases(),
        )
    )


def _beside_phrases() -> str:
    """Give the tables in which what may be a phrase is the first row."""
    word, sign = r"[\w !@#$%^&*+~?.,\t\x80-\xff-]*", "[0-9!@#$%^&*+~?]"
    phrase = f"(?:{word},{word}{sign}{word}|{word}{sign}{word},{word}){_END}"
    return rf"{_KEEPING}{_PLAIN}\n\n?{phrase}|[^\s] *\t{_PLAIN}{_KEEPING}|{_KEEPING}{_PLAIN}\t"


# A phrase of small words below a label, and what a command prints that has letters alone, or keys.
_PHRASES = (
    r"(?i:phrase)[^\n]*:[^\w\n]*\n|(?i:xkcdpass|diceware)[^\n]*\n"
    r"|(?i:pass (?:show|-c)|pass [^\s|]+[^\w\n]*\n|gopass|op read|lpass show|bw get|rbw get|passage|-password -w"
    r"|keepassxc-cli show|secrets versions access|secrets? get|base64 (?:-d|--decode)|erlang\.cookie|keys list"
    r"|auth(?:orization)? create|tokens? (?:create|add|list|new|issue))"
)
_WHO = in_bytes(answers.WHO)
_ASKED = rf"(?m:^){_WHO}[^\n]*(?i:{in_bytes(answers.ASKING)})[^\n]*\n\n?{_WHO}"
_TRIED = (
    r"(?i:try|tried|typed|entered|used|mit|avec|con)[ \t]+[\"'`?]?[^\s\"'`,()]{4,}[^\n]*\n?[^\n]*"
    r"(?i:invalid|wrong|nicht mehr rein|denied|incorrect)"
)
SIGNS = {
    told.IN_SENTENCE: "|".join(f"(?i:{one.opening})(?:{told.rest_of(index)})" for index, one in enumerate(TELLINGS)),
    told.BEHIND: comments.SIGN,
    told.INSERTED: r"(?i:\)[^\w()]*values[^\w()]*\()",
    told.WRAPPED: _opened(rf"[^\n:=\"`(){{}}\[\]<>;]*\n[ \t]*(?:[>#*|]+|//+|--)?[ \t]*[a-z][^\n]*{_ODD}"),
    # Words in other alphabets have lines below them too.
    told.BELOW: rf"{_below()}|{_tables()}|{_PHRASES}|\?\?",
    told.LISTED: rf"(?i:{in_bytes(accounts.HEAD)})|(?i:{in_bytes(accounts.SAID_HEAD)}){in_bytes(accounts.SAID_USER)}",
    told.ANSWERED: f"{_ASKED}|{_TRIED}",
    told.CODES: rf"(?i:{in_bytes(codes.HEADING)})[^\n]?{in_bytes(codes.LISTED)}",
    told.FOREIGN: rf"(?i:{languages.WORDS})|(?i:password|pass|pwd|pw|passphrase)(?:{languages.LEADING})|\?\?",
}
