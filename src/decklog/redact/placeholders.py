"""Words that are no secrets: what stands in place of one, what is said about one."""

from decklog.prepared import prepared


def word_set(text: str) -> frozenset[str]:
    """Give the words of a text as a set."""
    return frozenset(text.split())


# A value that is one of these is a state, a type, a placeholder or a word of the sentence it stands in.
BENIGN_WORDS = word_set(
    """
    none null nil true false yes no on off undefined empty unset set unknown any optional required mandatory
    missing invalid valid expired wrong incorrect correct failed ok okay success error changed updated reset
    rotated revoked deleted created generated encrypted hashed plaintext plain hidden masked redacted
    removed omitted filtered private public internal protected sensitive confidential default auto automatic
    manual prompt input output ask field type text string str bytes byte int integer number float bool
    boolean object array list dict map char varchar secretstr password passwd passphrase passcode pwd pass
    pw secret token key apikey api_key api-key auth authorization bearer basic digest credential credentials
    user username admin login email name value example sample placeholder dummy test todo tbd fixme na n/a
    changeme change_me change-me changeit replaceme replace_me replace-me insert_here your_password
    yourpassword mypassword my_password my-password notset not_set unspecified disabled enabled supported
    unsupported provided stored inherit inherited environment env vault file path url uri id hash salt self
    this that these those the a an and or not is in for of to from if when at by with as be are was were has
    have had will would should must may might can could please enter see use using via your my our their its
    it also only same here there where which who what why how then than but so refresh access session cookie
    jwt oauth oauth2 oidc saml sso ssh tls ssl http https rsa ed25519 hs256 rs256 es256 sha256 strong weak
    short long too new old current previous next first last confirm confirmation verify verification
    handling rotation policy support management manager storage store flow form page screen step validation
    validator authentication length strength count limit usage budget cost window errors failure issue
    issues bug fix passwort kennwort contraseña senha wachtwoord parola hasło heslo lösenord adgangskode
    salasana parool şifre jelszó erforderlich benötigt obligatoria obligatorio obligatoire requis requise obrigatório obrigatória
    obbligatoria obbligatorio richiesta vereist verplicht påkrævd obligatoriskt wymagane zorunlu kötelező povinné
    pakollinen vaaditaan påkrævet påkrevd krävs kreves wajib obavezno obvezno kohustuslik falsch ungültig inválida incorrecta
    incorrecto incorrecte invalide errata scaduta onjuist nieprawidłowe väärä geheim codewort zugangscode losungswort
    fake faked mock mocked stub stubbed bogus fixture foo bar baz qux foobar blah nope whatever anything something nonsense
    notreal not-real not_real fakepass fakepassword faketoken fakesecret fakekey mockpassword mocktoken mocksecret dummypass
    dummypassword dummytoken dummysecret x-oauth-basic x-token-auth lozinka geslo foobared b64enc b64dec quote squote tojson
    """
)

# Words that make a value with spaces a sentence or a label rather than a passphrase.
STOP_WORDS = word_set(
    """
    the a an is are was be to of for in on at with by from and or not your you my our their its it this that
    must should can enter please forgot reset change confirm new old current password passwords token secret
    key invalid required show hide has have will use using no if when wrong does do did repeat again minimum
    least characters as set create update
    """
)

# Words for things in systems and of programs that are words of a household too; a phrase may have two of them.
AT_HOME = word_set(
    """
    window salt page screen map flow bug form budget storage store cloud bucket stage branch bar world image team pod head
    body mail master agent site host queue role quote step manual release
    """
)

_HELD = (
    r"(?:ctrl|control|cmd|command|alt|option|opt|altgr|shift|super|meta|win|windows|hyper|mod|fn|primary"
    r"|cmdorctrl|commandorcontrol|strg|umschalt|maj)"
)
_PRESSED = (
    r"(?:f?\d{1,2}|enter|return|tab|esc|escape|space|backspace|delete|del|insert|ins|home|end|page_?(?:up|down)|pg(?:up|dn)"
    r"|(?:arrow_?)?(?:up|down|left|right)|plus|minus|comma|period|slash|print(?:screen)?|pause|break|(?:numpad|num|kp|digit|key)_?\w|[!-~])"
)
_CHORD = (
    rf"(?:(?:{_HELD}[ ]?[+-][ ]?)+{_PRESSED}|(?:<{_HELD}>[+-]?)+{_PRESSED}|<(?:(?:[cmsad]|{_HELD})-)+{_PRESSED}>"
    rf"|<leader>[!-~]{{1,3}}|(?:[cms]-)+{_PRESSED})"
)
_CHORDS = prepared(rf"(?i){_CHORD}(?:[ ,]+(?:{_CHORD}|{_PRESSED})){{0,3}}")
_SHORTEST_CHORD, _LONGEST_CHORD = 3, 48


def is_chord(value: str) -> bool:
    """Tell whether a value is keys that are pressed together: `Ctrl+Shift+5`, `Cmd-K`, `<C-a>`."""
    if not _SHORTEST_CHORD <= len(value) <= _LONGEST_CHORD or not ("+" in value or "-" in value or ">" in value):
        return False
    return bool(_CHORDS.fullmatch(value))
