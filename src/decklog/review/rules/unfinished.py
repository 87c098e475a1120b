"""Work that is called done and is not: stubs, results that are written down instead of found, and code that nothing reaches."""

import re
from collections.abc import Iterator

from decklog.review.rules.rule import JVM, SCRIPTS, SHELLS, C, Found, Told, of_rules, rule
from decklog.review.rules.source import Source

STUB = Told("stub", "it is not done yet", "Do it, or say in the title that it is a part.")
CONFESSED = Told("stub", "the comment says that it is not done, or not for real", "Do it, or name where it is followed up.")
HARD_CODED = Told("hard-coded", "the answer is written down, whatever is asked", "Find it from what is given.")
UNUSED = Told("dead-code", "nothing uses this", "Take it out.")
DEAD = Told("dead-code", "nothing reaches this", "Take it out; the history keeps it.")
KNOWS_TESTS = Told("knows-its-tests", "it does something else when it is tested", "Do the same, whoever looks.")
_BRACES = (*SCRIPTS, *JVM, *C, ".cs", ".php", ".dart", ".swift", ".go", ".rs")
_LITERAL = r"(?:-?\d+(?:\.\d+)?\w?|\"[^\"\n]*\"|'[^'\n]*'|true|false|null|nil)"
_FUNCTION = (
    r"(?:\bfunction\s+\w+|\bfunc\s+(?:\([^)]*\)\s*)?\w+|\bfn\s+\w+|\bfun\s+\w+|^[ \t]*(?:(?:public|private|protected"
    r"|static|final|async|export)\s+)*[\w<>\[\]]+\s+\w+|class\s+\w+\s*\{\s*[\w<>]+\s+\w+)\s*\(\s*(?!\s*(?:_"
    r"|void\s*\)))\w[^(){}]*\)[^(){};=]{0,40}\{\s*"
)
_NOT_DONE = (
    r"(?:not (?:yet )?(?:been )?implemented|unimplemented|not supported yet|implement (?:me|this)|todo\b"
    r"|to be implemented|coming soon|\bstub(?:bed)?\b|not done yet|tbd\b)"
)

_RULES = (
    rule(
        STUB,
        (),
        rf"(?i)\b(?:throw|raise|panic|fatalError|die|abort|fail|Err|errors\.New|fmt\.Errorf|reject|error|preconditionFailure"
        rf"|croak|assert)\b[^\n;\"'`]{{0,60}}[\"'`][^\"'`\n]{{0,40}}{_NOT_DONE}",
        rf"(?i)^[ \t]*(?:echo|print\w*|puts|console\.\w+\(|log\w*\.\w+\()\s*\(?[\"'][^\"'\n]{{0,20}}{_NOT_DONE}",
        rf"(?i)\breturn\b[^\n;\"'`]{{0,30}}[\"'`][^\"'`\n]{{0,20}}{_NOT_DONE}",
    ),
    rule(STUB, (".rs",), r"\b(?:todo|unimplemented)!\s*\("),
    rule(STUB, (".kt", ".kts"), r"(?<![\w.])TODO\("),
    rule(STUB, (".scala",), r"=\s*\?\?\?"),
    rule(STUB, (".cs",), r"\bNotImplementedException\b"),
    rule(STUB, JVM, r"\bNotImplementedError\b|\bnew\s+(?:NotImplementedException|UnsupportedOperationException)\(\s*\)"),
    rule(STUB, (".php",), r"new\s+\\?(?:BadMethodCallException|LogicException|NotImplemented\w*)\(\s*\)"),
    rule(STUB, (".ex", ".exs"), r"\braise\s+\"(?i:todo|not implemented)"),
    # A function of some weight that says yes, or nothing, whatever it is given.
    rule(
        STUB,
        _BRACES,
        r"(?i)\b(?:function|func|fun|fn|def|bool|boolean|public|private|protected|static|const)\b[^\n{};=]{0,80}?\b(?:is|has"
        r"|can)?_?(?:verif|validat|authoriz|authenticat|check|allow|permit|valid|admin|login)\w*"
        r"\s*(?:=\s*)?(?:async\s*)?\([^){}\n]*\w[^){}\n]*\)[^\n{};]{0,40}\{\s*(?:return\s+)?true\s*;?\s*\}",
        r"(?i)\bconst\s+(?:is|has|can)?_?(?:verif|validat|authoriz|authenticat|check|allow|permit|valid"
        r"|admin)\w*\s*=\s*(?:async\s*)?\([^)]*\w[^)]*\)[^=\n]*=>\s*(?:true\b|\{\s*return\s+true)",
    ),
    rule(
        STUB,
        (".rb",),
        r"(?s)\A(?!.*(?:class\s+\w*(?:Base|Abstract|Interface)|module\s|subclass|abstract"
        r"|<\s*Struct)).*?^[ \t]*raise\s+NotImplementedError",
    ),
    # Numbers that are written down, whatever is asked.
    rule(
        HARD_CODED,
        _BRACES,
        rf"{_FUNCTION}(?:if\s*\(?\s*\w+\s*={{2,3}}\s*{_LITERAL}\s*\)?\s*\{{?\s*return\s+{_LITERAL}\s*;?\s*\}}?\s*)+(?:return\s+{_LITERAL}\s*;?\s*)?\}}",
    ),
    rule(HARD_CODED, _BRACES, rf"{_FUNCTION}return\s+-?(?:[1-9]\d*(?:\.\d+)?|0\.\d+)\w?\s*;?\s*\}}"),
    rule(
        DEAD,
        SHELLS,
        r"^exit(?:\s+\d+)?[ \t]*\n(?:[ \t]*\n)*(?![ \t]*(?:\}|fi\b|;;|esac\b|done\b|else\b|elif\b|#|\w+\(\)|[A-Z_]+$))\S",
    ),
    rule(DEAD, C, r"^[ \t]*#\s*if\s+0\b"),
    rule(
        DEAD, _BRACES, r"(?<![\w.])(?:if|while)\s*\(\s*(?:false|0|!1|!true|1\s*==\s*2|true\s*===?\s*false|false\s*&&[^()]*)\s*\)"
    ),
    rule(DEAD, (".go", ".rs", ".swift"), r"(?<![\w.])if\s+false\b"),
    rule(DEAD, (".rb", ".sh", ".bash", ".lua", ".ps1"), r"^[ \t]*(?:if|while)\s+(?:false\b|\(?\$false\b|\[\s*1\s*-eq\s*0\s*\])"),
    # After what leaves a block, and before it ends.
    rule(
        DEAD,
        tuple(one for one in _BRACES if one not in (".go", ".swift", ".rs")),
        r"^(?P<in>[ \t]+)(?:return\b[^;{}\n]*|throw\b[^;{}\n]*|break|continue)\s*;[ \t]*\n(?:[ \t]*\n)*(?P=in)(?![ \t]*(?:\}"
        r"|case\b|default\b|function\b|class\b|\w+\s*:\s*$|#))\S",
        bare=True,
    ),
    rule(
        DEAD,
        (".go", ".rs", ".swift"),
        r"^(?P<in>[ \t]+)(?:return\b(?![^\n]*[,({\[+|&]\s*$)[^{}\n]*|break|continue"
        r"|panic\([^\n]*\))\s*;?[ \t]*\n(?:[ \t]*\n)*(?P=in)(?![ \t]*(?:\}|\)|case\b|default\b|\w+:\s*$|\.|[+|&]))\S",
        bare=True,
    ),
    rule(
        KNOWS_TESTS,
        (),
        r"\bPYTEST_CURRENT_TEST\b|[\"']pytest[\"']\s+in\s+sys\.modules|[\"']unittest[\"']\s+in\s+sys\.modules"
        r"|\bJEST_WORKER_ID\b|\bprocess\.env\.(?:VITEST|JEST\w*)\b",
        r"process\.env\.NODE_ENV\s*={2,3}\s*['\"]test['\"]|\btesting\.Testing\(\)|flag\.Lookup\(\s*\"test\.v\""
        r"|Rails\.env\.test\?|cfg!\(\s*test\s*\)",
        r"(?i)\bif\b[^\n]*\b(?:is_testing|in_tests|running_tests|under_test)\b",
    ),
)
# Words of somebody who knows that it is not done. A word alone may be about something else: a temporary file.
_CONFESSION = re.compile(
    r"""(?ix)
    \bnot\ (?:yet\ |really\ |actually\ |fully\ )?(?:been\ )?implemented\b (?!\ (?:by|in|on|for|here\ because))
    | \b(?:to\ be|will\ be|needs?\ to\ be|should\ be)\ (?:properly\ )?(?:implemented|replaced|finished|completed|filled\ in
      |done\ properly)\b
    | \bimplement(?:ed|ation)?\ (?:(?:it|this|me|properly|goes|comes)\ )?(?:later|here|soon|pending)\b
    | \bhard-?\s?cod(?:ed?|ing)\b (?!\ (?:in\ the|by))
    | \b(?:fake|dummy|mock(?:ed)?|canned|made-?up|bogus|placeholder|stub(?:bed)?)\ (?:data|values?|results?|responses?
      |implementation|answers?|return|numbers?|for\ now|until)\b
    | \b(?:just\ |only\ )?for\ now\b | \bfor\ the\ (?:moment|time\ being)\b | \bin\ the\ meantime\b
    | \bin\ (?:a\ )?(?:real|production)\ (?:implementation|system|app(?:lication)?|world|code|environment|life)\b
    | \bwould\ (?:normally|really|actually|usually)\b
    | \bsimulat(?:e|es|ed|ing)\ (?:the|a|an|success\w*|real|api|network|\w+ing|\w+\ (?:call|response|request)s?)\b
    | \bpretend(?:s|ing)?\b | \b(?:quick|dirty|ugly|temporary|temp)\ (?:hack|fix|workaround|solution|and\ dirty|stopgap|measure)\b
    | \btemporar(?:y|ily)\ (?:disabl|skip|comment|remov|bypass|hack|return|allow|hard|turn|ignor)\w*
    | \b(?:make|makes|making|let|keep|get|so)\ (?:the\ |that\ |all\ )?(?:unit\ )?tests?\ (?:pass|passes|green|happy)\b
    | \b(?:ones|cases|values|numbers|inputs)\ (?:that\ |which\ )?(?:the\ |our\ )?tests?\ (?:use|expect|check|need|ask|try)\b
    | \b(?:expected|wanted|needed|required)\ by\ (?:the\ )?tests?\b
    | \bto\ (?:pass|satisfy|please|appease)\ (?:the\ )?(?:tests?|ci|linter|type\ ?checker)\b
    | \bremove\ (?:this\ |me\ |it\ )?(?:before|when|after|later|once)\b | \bdo\ not\ (?:commit|merge|ship)\b
    | \bdon'?t\ (?:commit|merge|ship)\b
    | \b(?:skip|skipping|skipped|ignore|ignoring|disabled?|disabling|bypass(?:ing|ed)?)\b[^.\n]{0,30}\b(?:for\ now
      |until\ (?:later|fixed|we)|temporarily)\b
    | \bfix\ (?:this\ |it\ |me\ )?later\b | \bclean\ (?:this\ |it\ )?up\ later\b | \bcome\ back\ to\ this\b
    | \bno\ time\ to\b | \bgood\ enough\ for\b
    | \bworks\ on\ my\ machine\b | \bdon'?t\ know\ why\b | \bno\ idea\ why\b
    | \bshould\ (?:really|probably)\ (?:be|do|use|handle|check)\b
    """
)
_LINK = re.compile(r"https?://|#\d+|\b[A-Z][A-Z0-9]+-\d+\b|\bgh-\d+")
_IMPORTED = {
    **dict.fromkeys(
        (".js", ".jsx", ".ts", ".tsx", ".mjs"),
        re.compile(r"^import\s+(?:type\s+)?(?P<names>[\w$\s,{}]+?)\s+from\b", re.MULTILINE),
    ),
    ".java": re.compile(r"^import\s+(?:static\s+)?[\w.]+\.(?P<names>\w+);", re.MULTILINE),
    ".kt": re.compile(r"^import\s+[\w.]+\.(?P<names>[A-Z]\w+)$", re.MULTILINE),
}


def unfinished(source: Source) -> Iterator[Found]:
    """Find what is not done in the new lines of a file; of tests, which pretend by trade, only what nothing reaches."""
    for found in of_rules(_RULES, source):
        if not source.is_test or found.told is DEAD:
            yield found
    yield from _unused_imports(source)
    if source.is_prose or source.is_test:
        return
    for line, note in source.notes():
        if _CONFESSION.search(note) and not _LINK.search(note):
            yield Found(CONFESSED, line)


def _unused_imports(source: Source) -> Iterator[Found]:
    """Find what a script imports, or a class of Java, and the file never names again."""
    pattern = _IMPORTED.get(source.suffix)
    for line, match in source.found(pattern) if pattern is not None else ():
        names = [part.rpartition(" as ")[2].split()[-1] for part in re.split(r"[{},]", match["names"]) if part.strip()]
        if any(re.fullmatch(r"[\w$]+", name) and name != "React" and source.words[name] == 1 for name in names):
            yield Found(UNUSED, line)
