"""Secrets that are told apart by their place among the arguments of a call."""

from decklog.redact.rules.rule import Rule, rule

CALLS: tuple[Rule, ...] = (
    rule("signing-secret", "define", r"[^\"'\n]{32,}", keep=r"define\([ \t]*[\"'][A-Z_]{0,40}(?:SALT|KEY)[\"'],[ \t]*[\"']"),
    rule(
        "signing-secret",
        "jwt.",
        r"[^\"'\n]{6,}",
        keep=r"(?i:jwt\.(?:sign|verify|encode|decode)\([^,\n\"']{1,80},[ \t]*b?[\"'])",
    ),
    rule(
        "signing-secret",
        "hmac cipher",
        r"[^\"'\n]{6,}",
        keep=r"(?:createHmac|createCipheriv|createDecipheriv)\([ \t]*[\"'][\w-]{1,32}[\"'],[ \t]*[\"']",
    ),
    rule(
        "signing-secret",
        "hmac.new fernet aesgcm secretkeyspec",
        r"[^\"'\n]{8,}",
        keep=r"(?:hmac\.new|Fernet|AESGCM|SecretKeySpec)\([ \t]*b?[\"']",
    ),
    rule(
        "signing-secret",
        "cookieparser cookiesession cryptr simplecrypto",
        r"[^\"'\n]{6,}",
        keep=r"(?i:\b(?:cookieParser|Cryptr|SimpleCrypto)\([ \t]*\[?[ \t]*[\"']"
        r"|\bcookieSession\([^)\n]{0,120}?\bkeys:[ \t]*\[[ \t]*[\"'])",
    ),
    rule("signing-secret", "crypt(", r"[^\"'\n]{6,}", keep=r"AES\.(?:en|de)crypt\([^,\n]{1,80},[ \t]*[\"']"),
    rule(
        "connection-password",
        "construct( pdo( connect( getconnection( imap_open( mysql( mysqli(",
        r"[^\"'\n]{4,}",
        keep=r"(?:PDO(?:->__construct)?|mysqli?(?:_connect)?|getConnection|pymysql\.connect|MySQLdb\.connect|imap_open)\([ \t]*"
        r"[\"'][^\"'\n]{1,160}[\"'],[ \t]*[\"'][^\"'\n]{1,64}[\"'],[ \t]*[\"']",
    ),
    rule(
        "connection-password",
        "login( ldap_bind( ftp_login( simple_bind credential passwordauth usernamepassword",
        r"[^\"'\n]{4,}",
        keep=r"(?:(?:smtp|imap|ftp|server|client|conn|session|mail)\w*\.login|ldap_bind|ftp_login|simple_bind_s|NetworkCredential"
        r"|UsernamePasswordCredentials|UsernamePasswordAuthenticationToken|PasswordAuthentication|Credentials\.basic)\([ \t]*"
        r"(?:\$?\w+,[ \t]*)?[\"'][^\"'\n]{1,96}[\"'],[ \t]*[\"']",
    ),
)
