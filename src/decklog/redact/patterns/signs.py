"""The words without which no text holds a secret: marks of providers, names, commands, calls, and what comes before one told.

They are apart from the rules because they are asked before those are loaded.
"""

# What tokens with a provider's mark have in them, in lower case.
_MARKS_TEXT = """
    ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ v1. glpat- gldt- glrt- glrtr- glcbt- glptt- glft- glagent- glimt- gloas- glsoat-
    glffct- gr1348941 _gitlab_s atbb atctt3x atatt3x gto_ azdo sgp_ akia asia abia acca a3t absk bedrock-api amzn.mws aiza
    ya29. 1//0 gocspx- 6lc 6ld 6le 6lf accountkey shared sig 7q~ 8q~ azse +ast acdb jqqj ltai akid ocid1. apikey aqvn t1.
    _v1_ lin_ scw hrku- cfat_ cfut_ cfk_ v1.0- vercel_ vcp_ vci_ vca_ vcr_ vck_ nfp_ nfc_ nfo_ nfb_ fo1_ fm1 fm2_ rnd_
    railway_ sbp_ sb_secret pscale_ napi_ turso_ dapi dkea dose ver:1 upstash pnu_ pnb_ sha256~ sk- hf_ api_org_ gsk_ xai-
    pplx- r8_ fw_ csk- nvapi- pcsk_ lsv2_ ls__ tvly- fc- jina_ sk_ pa- e2b_ ak- as- flp_ co_api_ npm_ pypi- dckr_ rubygems_
    cio oy2 akc ap cmvmd clojars_ x-apikey hex xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs- xapp- slack office.com
    webhook mfa. :aa sg. key- pubkey- -us xkeysib- xsmtpsib- re_ sk0 sk1 sk2 sk3 sk4 sk5 sk6 sk7 sk8 sk9 ska skb skc skd ske
    skf ac0 ac1 ac2 ac3 ac4 ac5 ac6 ac7 ac8 ac9 aca acb acc acd ace acf zoom.us live_ test_ apa91b rk_ pk_ ek_ whsec_ eaa
    sq0 access_token$ paypal shpat_ shpca_ shppa_ shpss_ shpua_ rzp_ flwseck flwpubk access- organizations/ aqe ezak eztk
    shippo_ duffel_ glc_ glsa_ nrak nrii nrjs nriq nrra nraa nrbr nrsp nral sntrys_ sntryu_ sentry phx_ phs_ phc_ dt0 hcaik_
    hcalk_ hcamk_ hcbik_ hcblk_ hcbmk_ hcxik_ hcxlk_ hcxmk_ pylf_ sdk- api- mob- secret- console- dd- xaat- xapt- bstk_ hvs.
    hvb. hvr. s. b. atlasv1 pul- dp. ops_eyj a3- age-secret st. 00 tskey- sc_ ext_ scauth_ authress_ ngrok privatekey
    preshared ccip bkua_ bkct_ bkat_ bkaj_ sqp_ squ_ sqa_ sqb_ snyk_ codecov 11 semgrep scalr ico- endr+ expo pmak- pmat-
    rdme_ rootly_ dvc_ unkey_ vtwn_ tr_ signkey- _auth ntn_ secret_ pat figd_ figu_ figo_ figor_ figur_ cfpat- sk.eyj pk.eyj
    tk.eyj aaaaaaaaaaaaaaaaaaaa igq wpl_ap act. sl. cflt tfp_ zapier ifttt fio-u- skprod sb- _mmk s-s4t2 rgapi- monday sat.
    hmac= pak_ pat_ key_ tok_ token_ api_ eyj aio_ atta pat-na pat-eu xprv yprv zprv tprv -----begin ----begin aws4 bearer
    basic digest argon2 bcrypt pbkdf2 scrypt
"""
MARKS = tuple(_MARKS_TEXT.split())
# Those of them that begin no word and no name; what follows them may be letters alone, or a number as digests are.
SURE_MARKS = (
    *(mark for mark in MARKS if len(mark) > 2 and not mark.isalnum()),
    *("dkea", "dapi", "dose", "eaaa", "acca", "aaaaaaaaaaaaaaaaaaaa"),
)
# Names that sentences have too: more is asked of the text.
WEAK_NAMES = (
    *(
        "secret",
        "token",
        "key",
        "pin",
        "user ",
        "root",
        "admin",
        "guest",
        "ubuntu",
        "oracle",
        "postgres ",
        "postgres:",
        "postgres/",
    ),
    *("new one", "old one", "other one"),
)
# Words beside which a value that could be nothing else is one.
NEARBY = ("user", "root", "admin", "mail", "sql", "connect", "ssh", "log in", "log on", "sign in", "sign on", "private")
# What one does to get in.
GETTING_IN = (
    *("log in", "log on", "logs in", "logged", "logging", "sign in", "signs in", "sign on", "signs on", "signon", "signg"),
    *("logson", "ssh in", "get in", " sa ", '"sa ', "'sa ", "digo", "codice", "kod", "sms"),
)
TRYING = ("use ", "using ", "try ", "enter", "type")
CODES = (
    *("door", "gate", "alarm", "safe", "entry", "entrance", "garage", "locker", "lock", "building", "office", "unlock"),
    *("access", "activation", "recovery", "backup", "rescue", "emergency", "verification", "security", "2fa", "mfa", "otp"),
    *("totp", "login", "signin", "sign-in", "pairing", "scratch", "one-time", "time", " a", "sms", "product", "registration"),
)
# The words for a password in other alphabets than that of English.
OTHER_ALPHABETS = (
    *(
        "парол",
        "пасс",
        "код",
        "κωδικ",
        "סיסמ",
        "كلمة",
        "رمز",
        "पासवर्ड",
        "รหัสผ่าน",
        "лозинк",
        "шифра",
        "пин",
        "密码",
        "密碼",
        "口令",
        "パスワード",
    ),
    *("暗証番号", "비밀번호", "암호", "비번", "პაროლ", "գաղտնաբառ", "گذرواژه", "پاس ورڈ", "পাসওয়ার্ড", "கடவுச்சொல்", "токен", "ключ"),
    *(
        "密钥",
        "密鑰",
        "令牌",
        "トークン",
        "토큰",
        "合言葉",
        "验证码",
        "驗證碼",
        "認証コード",
        "確認コード",
        "인증번호",
        "подтвержден",
    ),
)
# What a person calls a random value that is told without a sign before it.
KEY_NOUNS = ("key", "token", "secret", "credential", " one ")
# Words of sentences that are part of none of those above, nor of what else is looked for: a text is looked at without them. That
# tests passed is said in many texts.
_ORDINARY_TEXT = """
    the of it that and what are its for by with not run from each nothing which branch where runs without every when so own
    task first before all may how takes those can does agent another two have comes written were found change call after
    over page goes any who line under would whose than find waits record many entries agents next text needs never holds
    more none files known memory looked keeps second kept rules calls whole model given changed held taken take left shows
    process number both gives had counts tells write list work about long unless way whatever writes come now here changes
    review since stays else through whether look looks commit show row everything server texts came also leaves until lines
    ends something keep others such start tables lost behind makes wait between rows plan machine down measured while done
    end half still itself order most already tried longer far thing worker three part message costs kind must pages records
    but rule fix knows ended stay states could lists starts short exactly alone verify begins finds day cost works error
    below been against checked failed tell compared state checks several five shown step gone why rest twice give among
    exact small being attempt need bytes empty statement fewer leave tree worked third however marked group counted like
    ways four fields table running plans good numbers means copy moment report they was this has them there their then test
    tests same only made out up once again be or an at no ran suite wrote parser builds reads should note noted seems
    because some very just see file passed passed. passed, passed; passed: passed) passes passes. passes, passes;
    passes: passes) passing passing. passing, passing; passing: passing) The It This What When Each That All If There They
"""
ORDINARY = frozenset(_ORDINARY_TEXT.split())
