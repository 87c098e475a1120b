"""What takes protection away in any language: certificates that nobody checks, open doors, weak ciphers."""

import re

from decklog.review.rules.rule import JVM, RECIPES, SCRIPTS, SETTINGS, SHELLS, Told, rule

TLS = Told("tls", "whom it talks to is not checked", "Leave the check of certificates and hosts on; give it the right authority.")
CRYPTO = Told(
    "crypto",
    "what should protect here does not",
    "Use what is made for it: scrypt, an authenticated cipher, the system's own chance.",
)
EXPOSED = Told("exposed", "it is opened to everybody", "Name who may.")
FOREIGN = Told("shell", "words of others become a part of a script", "Hand them over as an environment variable.")
LOSS = Told("data-loss", "all of the data goes, whatever is in it", "Say which rows are meant.")
ENTITIES = Told("unpickling", "a document may name files and addresses to be read", "Leave external entities off.")
SIGNATURE = Told("crypto", "a signature is not checked", "Check it, by the algorithms that are expected.")

_OFF = r"(?:false|no|off|0|none|disabled?)"
_ON = r"(?:true|yes|on|1)"
_NAMED = r"(?:password|passwd|passphrase|secret|token|session|otp|nonce|salt|csrf|api_?key|reset|invite|verification)"
_SHARP = (*SETTINGS, *SHELLS, *RECIPES, ".ps1", ".bat", ".cmd")

RULES = (
    # Certificates and hosts
    rule(
        TLS,
        (),
        r"\brejectUnauthorized\b['\"]?\s*[:=]\s*(?:false|0)\b",
        r"NODE_TLS_REJECT_UNAUTHORIZED\W{1,6}0",
        r"\bInsecureSkipVerify['\"]?\s*[:=]\s*true",
        r"(?i)\b(?:danger_accept_invalid_(?:certs|hostnames)|accept_invalid_(?:certs|hostnames))\s*\(\s*true",
        r"SslVerifyMode::NONE|SSL_VERIFY_NONE|OpenSSL::SSL::VERIFY_NONE|\bCERT_NONE\b|verify_mode\s*=\s*:none\b",
        r"(?i)\bCURLOPT_SSL_VERIFY(?:PEER|HOST)\b\s*(?:,|=>)\s*(?:false|0)",
        r"ServerCertificate(?:Custom)?ValidationCallback\s*[+=]{1,2}\s*[^;\n]{0,80}=>\s*(?:true|\{\s*return\s+true)",
        r"DangerousAcceptAnyServerCertificateValidator|ALLOW_ALL_HOSTNAME_VERIFIER|AllowAllHostnameVerifier|NoopHostnameVerifier",
        r"TrustAllStrategy|TrustAllCert\w*|trustAllCert\w*|InsecureTrustManagerFactory|TrustSelfSignedStrategy",
        r"(?i)\bHostnameVerifier\b[^;]{0,120}(?:->|return)\s*\{?\s*(?:return\s+)?true",
        r"(?i)\bcheckServerTrusted\s*\([^)]*\)[^{};=]*\{\s*\}",
        r"badCertificateCallback\s*=[^;]{0,80}=>\s*true",
        r"(?i)\b(?:verify_ssl|ssl_verify|sslverify|verify_certs?|tls_verify|verify_tls|validate_certs?|strict-ssl|strict_ssl"
        r"|check_hostname)"
        rf"\b['\"]?\s*(?:[:=]|=>|\s)\s*['\"]?{_OFF}\b",
        r"(?i)\b(?:insecure_?skip_?(?:tls_?)?verify|(?:tls|ssl)_?insecure|skip_?(?:tls|ssl|cert\w*)_?verif\w*|tls_skip_verify"
        r"|allow_?insecure"
        rf"|trust_?server_?certificate|insecure-skip-tls-verify|insecure_ssl|disable_?(?:ssl"
        rf"|tls)(?:_?verif\w*)?)\b['\"]?\s*[:=]\s*['\"]?{_ON}\b",
        r"(?i)\bsslmode\s*[=:]\s*['\"]?(?:disable|allow)\b|\buseSSL=false|\bsslVerify['\"]?\s*[=\s]\s*false"
        r"|verifyServerCertificate=false",
        r"(?i)PYTHONHTTPSVERIFY\W{1,3}0|GIT_SSL_NO_VERIFY\W{1,4}(?:1|true)|PGSSLMODE\W{1,3}disable",
        r"InsecureIgnoreHostKey|UserKnownHostsFile[= ]/dev/null|(?i:StrictHostKeyChecking)['\"]?[=: ,]{1,3}['\"]?(?i:no|false)\b",
        r"\bgrpc\.WithInsecure\(\)|\binsecure\.NewCredentials\(\)|usePlaintext\(\)",
        r"URLCredential\(\s*trust\s*:|hostnameVerifier\s*\{[^}]*->\s*true|PromiscuousVerifier|\bIgnoreCertificateErrors\b"
        r"|ignoreHTTPSErrors\s*:\s*true|ignore-certificate-errors",
    ),
    rule(
        TLS,
        (*_SHARP, *SCRIPTS, ".py", ".rb", ".php", ".go"),
        r"\bcurl\b[^\n|;&]*\s(?:--insecure|-[a-zA-Z]*k[a-zA-Z]*)(?=[\s'\",]|$)",
        r"--no-check-certificate\b|--trusted-host\b|--allow-unauthenticated\b|--no-gpg-check\w*\b|--nogpgcheck\b",
        r"--insecure-skip-tls-verify\b(?!=false)|--tls-?verify=false|--skip-tls\b|--no-verify-ssl\b|\bAllowUnauthenticated\b",
        r"\[trusted=yes\]|\bgpgcheck\s*=\s*0|--(?:extra-)?index-url[= ]+http://|registry\s*=\s*['\"]?http://(?!localhost|127)",
    ),
    # Open doors
    rule(
        EXPOSED,
        (),
        r"(?i)access-control-allow-origin['\"]?\s*[,:=]\s*\[?['\"]?\*",
        r"(?i)\b(?:allow(?:ed)?_?origins?|cors_allowed_origins|cors_origin_allow_all|cors_allow_all_origins)\b['\"]?\s*(?:[:=(]"
        r"|=>)\s*"
        r"(?:[\[(]?\s*['\"]\*|true)",
        r"(?i)\bcors\(\s*\{[^}]*\borigin\s*:\s*(?:['\"]\*|true)|\bcors\(\)|AllowAnyOrigin\(\)"
        r"|@CrossOrigin\(\s*(?:origins\s*=\s*)?\"\*",
        r"\bALLOWED_HOSTS\s*=\s*\[\s*['\"]\*",
        r"(?i)\b(?:session_|csrf_)?cookie_?(?:secure|httponly|http_only)\b['\"]?\s*[:=]\s*['\"]?false",
        r"\bhttpOnly\s*:\s*false|\bWTF_CSRF_ENABLED\s*=\s*False|@csrf_exempt|\bcsrf\(\)\.disable\(\)|\.csrf\([^()\n]*(?:disable"
        r"|::disable)"
        r"|skip_before_action\s+:verify_authenticity_token|protect_from_forgery\s+with:\s*:null",
        r"(?i)\bgrant\s+all\b[^;\n]{0,120}\bto\s+(?:public\b|['\"`]?\w*['\"`]?@['\"`]%)",
    ),
    rule(
        EXPOSED,
        (*_SHARP, *SCRIPTS, ".go", ".rb", ".php", ".rs", ".java", ".c"),
        r"(?i)\bchmod\b[^\n&]{0,80}?\b0?o?[0-7]?777\b|\bchmod\s+(?:-\w+\s+)*(?:a|o|ugo)\+\w*w|os\.(?:FileMode|Chmod|MkdirAll"
        r"|WriteFile)\([^\n]{0,80}0o?777"
        r"|\bmode['\"]?\s*[:=]\s*['\"]?0?o?0?777\b|\bumask\s*\(?\s*0{1,4}\)?\s*(?:;|$)",
    ),
    rule(
        EXPOSED,
        (*SETTINGS, *RECIPES, *SHELLS),
        r"(?im)^[ \t]*(?:-[ \t]*)?(?:privileged|hostNetwork|hostPID|hostIPC|allowPrivilegeEscalation"
        r"|publicly_accessible)\s*[:=]\s*true",
        r"(?im)^[ \t]*runAsUser\s*:\s*0\s*$|^[ \t]*(?:network_mode|pid)\s*:\s*['\"]?host",
        r"\bdocker\s+run\b[^\n]*--privileged|/var/run/docker\.sock:/",
        r"(?s)\bingress\b[^{}]{0,40}\{[^{}]{0,400}0\.0\.0\.0/0",
        r"(?m)^[ \t]*acl\s*=\s*\"public-read(?:-write)?\"|\"Principal\"\s*:\s*(?:\"\*\"|\{\s*\"AWS\"\s*:\s*\"\*\")",
        r"(?m)^[ \t]*block_public_(?:acls|policy)\s*=\s*false|\"Action\"\s*:\s*\[?\s*\"\*\"|^[ \t]*actions\s*=\s*\[\s*\"\*\"",
        r"(?m)^[ \t]*permissions:\s*write-all\b",
        r"(?m)^[ \t]*anonymous_access\s*[:=]\s*true|^[ \t]*(?:auth|authentication|authorization)(?:_enabled"
        r"|\.enabled)?\s*[:=]\s*(?:false|disabled|none)\b",
    ),
    rule(EXPOSED, ("dockerfile", "containerfile", ".dockerfile"), r"(?m)^[ \t]*USER\s+(?:root|0)\b(?![\s\S]*^[ \t]*USER\s)"),
    # What a forge puts into a script before a shell reads it
    rule(
        FOREIGN,
        (".yml", ".yaml"),
        r"\$\{\{[^}]*github\.(?:head_ref|event\.(?:issue|pull_request|comment|review|discussion|head_commit|commits|pages)"
        r"[\w.*\[\]]*\.(?:title|body|ref|label|message|name|email|page_name)|event\.inputs\.\w+)[^}]*\}\}(?<!\bsecrets)",
    ),
    # Ciphers, digests and chance
    rule(
        CRYPTO,
        (),
        r"(?i)\bMODE_ECB\b|[/\"'_-]ECB(?:[/\"'_-]|$)|\bmodes\.ECB\(|\bNewECB\w*\(",
        r"(?i)getInstance\(\s*\"(?:DES|DESede|RC4|RC2|Blowfish|ARCFOUR)\b|\b(?:des|rc4)\.New(?:Triple\w*)?Cipher\(|\bDES\.new\("
        r"|\bARC4\.new\("
        r"|DESCryptoServiceProvider|createCipher\(|createCipheriv\(\s*['\"](?:des|rc4|bf)",
        rf"(?i)\b(?:md5|sha1)(?:\.\w+)?\(\s*[\w.$\[\]'\">(-]*(?:{_NAMED})",
        rf"(?i)\b\w*(?:{_NAMED})\w*\s*[:=]{{1,2}}=?\s*[^\n;]{{0,40}}\b(?:md5|sha1)(?:\.\w+)?\(",
        r"(?i)(?:createHash|MessageDigest\.getInstance|hashlib\.new)\(\s*['\"](?:md5|sha-?1)['\"]\s*\)[^\n;]{0,40}(?:passw"
        r"|token|secret)",
        rf"(?i)\b\w*{_NAMED}\w*\b\s*(?::\s*\w+\s*)?(?::?=)\s*[^\n;=]{{0,60}}(?:\bMath\.random\(|\brand\.(?:Int\w*|Read)\("
        rf"|\bnew Random\(|\bmt_rand\("
        r"|(?<!crypto)\brand\(|\brandom\.(?:choices?|randint|random|randrange|sample|getrandbits)\(|\bRandom\.(?:next|rand)"
        r"|\buniqid\()",
        rf"(?i)(?:function|def|func|fun|fn)\s+\w*{_NAMED}\w*\s*\([^{{;]*[{{:][^}}]{{0,200}}?(?:\bMath\.random\(|\bmt_rand\("
        rf"|\brand\.Int\w*\(|\brandom\.(?:choices?|randint|random)\()",
        r"(?i)\b(?:tls|ssl)_?v?(?:ersion)?\w*\s*[:=]\s*[^\n]{0,20}(?:SSLv[23]|TLSv1(?:_0|\.0)?\b(?!\.[123])|VersionTLS10"
        r"|VersionSSL30)|\bPROTOCOL_(?:SSLv\w+|TLSv1)\b",
        r"\bMinVersion\s*:\s*tls\.Version(?:SSL30|TLS10|TLS11)|minVersion['\"]?\s*:\s*['\"]TLSv1(?:\.1)?['\"]",
    ),
    rule(
        SIGNATURE,
        (),
        r"(?i)\balgorithms?['\"]?\s*[:=]\s*\[?\s*['\"]none['\"]|verify_signature['\"]?\s*[:=]\s*false|SigningMethodNone"
        r"|UnsafeAllowNoneSignatureType",
        r"ignoreExpiration\s*:\s*true|\bParseUnverified\(|\bjwt\.decode\([^)]*(?:verify\s*=\s*False|,\s*nil\s*,\s*false)",
        r"(?i)\bvalidate(?:Issuer|Audience|Lifetime|IssuerSigningKey)\s*[:=]\s*false|RequireSignedTokens\s*=\s*false",
    ),
    rule(
        ENTITIES,
        (),
        r"resolve_entities\s*=\s*True|\bnoent\s*:\s*true|\bLIBXML_NOENT\b|XmlResolver\s*=\s*new\s+XmlUrlResolver"
        r"|DtdProcessing\.Parse\b",
    ),
    # Statements without a condition
    rule(
        LOSS,
        (".sql",),
        r"(?i)\bdelete\s+from\s+[\w.\"`]+\s*(?:;|\Z)",
        r"(?i)^[ \t]*truncate\s+(?:table\s+)?\w|\bdrop\s+(?:database|schema)\b(?!\s+if)",
        r"(?i)\bset\s+(?:global\s+)?foreign_key_checks\s*=\s*0|\bdisable\s+trigger\s+all|pragma\s+foreign_keys\s*=\s*off",
    ),
    rule(LOSS, JVM + SCRIPTS, r"(?i)[\"'`]\s*(?:drop\s+(?:database|schema)\s|truncate\s+table\s)", flags=re.IGNORECASE),
)
