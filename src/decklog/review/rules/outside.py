"""What comes from outside and leads to a file, an address or a place, in languages other than Python.

A name that was set to what a request says is followed within the file, as far as plain assignments lead. Whoever looks at it on
the way (takes the last part of a path, compares where it leads) is let go.
"""

import re
from collections.abc import Iterator

from decklog.review.rules.rule import JVM, SCRIPTS, Found, Told
from decklog.review.rules.source import Source

PATH = Told("path", "a name from outside decides which file is used", "Take its last part alone, or look where it leads.")
ADDRESS = Told("address", "a name from outside decides where it connects or leads to", "Choose from those that are allowed.")
_SOURCE = (
    r"(?:\b(?:req|request|ctx|context|event|this\.request)\.(?:request\.)?(?:params|query|body|headers|cookies|url|originalUrl"
    r"|files?|pathParameters|queryStringParameters)\b"
    r"|\br(?:eq)?\.(?:URL\.(?:Query|Path|RawQuery)|(?:Post)?FormValue|Form|PostForm|Header\.Get|PathValue)\b|\bc\.(?:Query"
    r"|Param|Params|PostForm|FormValue|QueryParam|DefaultQuery)\("
    r"|\bmux\.Vars\(|\bchi\.URLParam\(|\bgetParameter\(|\bgetHeader\(|\bgetPathInfo\(|\bgetOriginalFilename\(|@(?:RequestParam"
    r"|PathVariable|QueryParam|PathParam)\b"
    r"|\$_(?:GET|POST|REQUEST|COOKIE|FILES)\b|\bparams\[|\bparams\.(?:require|fetch)\(|\blocation\.(?:hash|search)"
    r"|\bsearchParams\.get\(|\bRequest\.(?:Query|Form|Params|Path)\b|\bFormFile\b"
    r"|\bcall\.(?:parameters|request)\b|\bPath\((?:\w+)\)\s*:|\bQuery\((?:\w+)\)\s*:)"
)
_ENTRY = (
    r"(?:\b\w*[eE]ntry\w*\.(?:getName\(\)|name\b|fileName\b|path\b|FullName\b|path\(\)|mangled_name\(\))|\b(?:hdr|header|f"
    r"|file|zf)\.Name\b(?!\())"
)
_FILES = (
    r"(?:(?:\bfs(?:p|Promises|\.promises)?\.\w+|\b(?:readFile|readFileSync|createReadStream|writeFileSync|unlinkSync)|\b(?:res"
    r"|reply|ctx)\.(?:sendFile|download|render))\("
    r"|\bos\.(?:Open|OpenFile|ReadFile|Create|Remove|RemoveAll|WriteFile)\(|\bioutil\.(?:ReadFile|WriteFile)\("
    r"|\bhttp\.ServeFile\(|\bc\.(?:File|FileAttachment)\("
    r"|\bnew\s+(?:File|FileInputStream|FileOutputStream|FileReader|FileWriter|FileSystemResource|UrlResource|RandomAccessFile"
    r"|FileStream|StreamReader|PhysicalFileResult)\(|(?<![.\w])File\(|\bFiles\.\w+\(|\bPaths?\.(?:get|of|Combine)\("
    r"|\bFile\.(?:read|open|new|delete|readlines|write|ReadAll\w+|Open\w*|Delete|Write\w+|Exists)\b|\bIO\.read\b|\bsend_file\b"
    r"|\bPhysicalFile\("
    r"|(?<![\w>$:])(?:include|require)(?:_once)?\b|(?<![\w>$:])(?:readfile|file_get_contents|fopen|unlink|file_put_contents"
    r"|move_uploaded_file|file|highlight_file)\s*\("
    r"|\b(?:std::|tokio::)?fs::(?:read\w*|write|remove\w*|File::\w+|copy)\(|\bFile::(?:open|create)\(|\bNamedFile::open\w*\()"
)
_PLACES = (
    r"(?:(?<![\w.])(?:fetch|got|request|axios|urlopen)\(|\baxios\.\w+\(|\bhttps?\.(?:get|request|Get|Post|NewRequest)\("
    r"|\bnew\s+URL\(|\bHttpClient\w*\.\w+\(|\b(?:client|httpClient|restTemplate)\.(?:get\w*|GetAsync|getForObject|exchange)\("
    r"|\bcurl_init\(|\bNet::HTTP\.\w+\(|\bURI\.open\(|\breqwest::get\(|\bres\.redirect\(|\bresponse\.sendRedirect\("
    r"|\bhttp\.Redirect\(|\bredirect_to\b|\bheader\(\s*['\"]Location:|\bRedirect\(|\bc\.Redirect\("
    r"|\bwindow\.location(?:\.href)?\s*=|\blocation\.(?:href|assign|replace)\b\s*[=(])"
)
_SAFE = re.compile(
    r"\bbasename\b|filepath\.(?:Base|Clean|Rel|IsLocal|EvalSymlinks)|path\.Base\b|\brealpath\b|\bstartsWith\b|\bHasPrefix\b"
    r"|\bstarts_with\b|\bstart_with\?|\bnormalize\b|getCanonicalPath|toRealPath|GetFullPath"
    r"|\bsanitize\w*|\bsafe\w*\(|\ballow\w*|\bwhitelist|\bindexOf\(['\"]\.\.|includes\(['\"]\.\.|Contains\([\w.]+,\s*\"\.\."
    r"|contains\(\"\.\.|in_array|\.canonicalize|strip_prefix|\bLocal\w*Url|\broot\s*:|FilenameUtils|\bisSafe|parseInt|Number\("
    r"|Atoi|\.to_i\b|\bint\b\s*\)|\bvalidate\w*|\bALLOWED|uuid|enclosed_name|SecureJoin|os\.Root|OpenInRoot|\.has\("
    r"|\bin\b\s+[A-Z_]{3,}",
    re.IGNORECASE,
)
_LANGUAGES = (*SCRIPTS, *JVM, ".go", ".rb", ".php", ".cs", ".rs")
_NEAR = 8
_MOST = 60


def outside(source: Source) -> Iterator[Found]:
    """Find names from outside that lead somewhere, on new lines of a file."""
    if source.suffix not in _LANGUAGES:
        return
    names = _set_from_outside(source)
    given = f"(?:{'|'.join([_SOURCE, *map(_as_word, names)])})"
    ways = ((PATH, _FILES, rf"(?:{given}|{_ENTRY})"), (ADDRESS, _PLACES, given))
    for told, sink, wanted in ways:
        # An address is only somebody else's to choose where it begins with what they say.
        between = (
            r"[^;\n]{0,120}?"
            if told is PATH
            else r"[^;\n\"'`+]{0,30}?(?:[\"'`]https?://[\"'`]?\s*(?:\+|\.|\$\{)\s*|`\$\{|[\"']\s*\.\s*)?\s*"
        )
        for line, _ in source.found(re.compile(rf"{sink}{between}{wanted}", re.MULTILINE)):
            if not _is_looked_at(source, line):
                yield Found(told, line)


def _as_word(name: str) -> str:
    return rf"(?<![.$\w]){re.escape(name)}(?!\w)"


def _set_from_outside(source: Source) -> list[str]:
    """Name what is set to something from outside, or to what was made of such a name."""
    code = source.blanked.code
    found = dict.fromkeys(
        re.findall(rf"(?m)(?:^|[\s;({{])(\$?\w+)\s*(?::\s*[\w<>\[\]|]+\s*)?(?::=|=)(?!=)\s*[^;\n]*?(?:{_SOURCE}|{_ENTRY})", code)
    )
    for names in re.findall(rf"\{{\s*([\w\s,:]+)\}}\s*=\s*[^;\n]*?{_SOURCE}", code):
        found |= dict.fromkeys(name.strip() for part in names.split(",") if (name := part.rpartition(":")[2] or part).strip())
    found |= dict.fromkeys(
        re.findall(r"@(?:RequestParam|PathVariable|QueryParam|PathParam)\b(?:\([^)]*\))?\s+(?:final\s+)?[\w<>]+\s+(\w+)", code)
    )
    found |= dict.fromkeys(re.findall(r"\b(?:Path|Query)\((\w+)\)\s*:", code))
    for name in list(found)[:_MOST]:
        derived = re.findall(
            rf"(?m)(?:^|[\s;({{])(\$?\w+)\s*(?::\s*[\w<>]+\s*)?(?::=|=)(?!=)\s*[^;\n]*?(?<![.$\w]){re.escape(name)}(?!\w)", code
        )
        found |= dict.fromkeys(derived)
    common = ("const", "let", "var", "err", "ok", "i", "_", "req", "r", "res", "request")
    return [name for name in found if name not in common][:_MOST]


def _is_looked_at(source: Source, line: int) -> bool:
    lines = source.blanked.code.split("\n")
    return any(_SAFE.search(text) for text in lines[max(0, line - 1 - _NEAR) : line + 3])
