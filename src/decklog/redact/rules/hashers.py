"""Passwords that are handed to what hashes them, or compares them with a hash: the call or the command has them as they are."""

from decklog.redact.rules.rule import Rule, rule

_TO = r"(?:\.|::|->)"
# The calls that make a hash or a key of a password, and those that compare one.
_NAMES = (
    rf"(?:b?crypt(?:\.net\.bcrypt)?{_TO}(?:hash\w*|crypt|generate\w*|compare\w*|checkpw|verify\w*|create)"
    rf"|(?:argon2\w*|scrypt|pbkdf2\w*|hasher){_TO}(?:hash\w*|make|check|encode|verify\w*|create)"
    r"|hash::(?:make|check)|hashpw|checkpw|password_?(?:hash|verify)\w*|hash_?passw\w*|(?:generate|check)_password_hash"
    r"|(?:make|check)_password|passwordencoder(?:\(\))?\.(?:encode|matches)|rfc2898derivebytes|pbekeyspec|scrypt(?:sync)?"
    r"|pbkdf2(?:sync|_hmac|_sha\d{3})?|derive_?key\w*|password_?derivebytes)"
)
_OPTION = r"(?:[ \t]+(?:-(?:salt|m|S|R|s|-method|-salt|-rounds|-scheme)[ =][^\s\"'-]\S*|-{1,2}[\w-]+(?:=\S+)?))"
_PLAIN = r"[^\s\"'$<>|-][^\s\"')|]{3,}"

HASHERS: tuple[Rule, ...] = (
    rule(
        "password",
        "hash crypt passw checkpw rfc2898 pbkdf2 keyspec derive",
        r"[^\"'\n]{4,}",
        keep=rf"(?i:{_NAMES}\([ \t]*(?:[\w.$]+,[ \t]*|[\"'][\w-]{{1,16}}[\"'],[ \t]*)?b?[\"'])",
        until=r"[\"']",
        odd=True,
        glued=True,
    ),
    rule(
        "command-password",
        "passwd",
        _PLAIN,
        start=r"(?:openssl[ \t]+passwd|mkpasswd)[ \t]",
        keep=rf"(?:openssl[ \t]+passwd|mkpasswd){_OPTION}{{0,5}}[ \t]+[\"']?",
        odd=True,
    ),
    rule(
        "command-password",
        "slappasswd doveadm hash-password",
        _PLAIN,
        start=r"(?:slappasswd|doveadm[ \t]+pw|caddy[ \t]+hash-password)[ \t]",
        keep=rf"(?:slappasswd{_OPTION}{{0,4}}?[ \t]+-s[ \t]+|doveadm[ \t]+pw{_OPTION}{{0,4}}?[ \t]+-p[ \t]+"
        r"|caddy[ \t]+hash-password\b[^\n|;&]{0,60}?"
        r"(?:--plaintext|-p)[ =])[\"']?",
        odd=True,
    ),
)
