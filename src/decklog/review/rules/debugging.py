"""What is left from looking for a fault: calls that print a value with no more words than its name, and debuggers."""

import ast
import re
from collections.abc import Iterator

from decklog.review.rules.rule import JVM, SCRIPTS, SHELLS, Found, Told, of_rules, rule
from decklog.review.rules.source import Source

DEBUG = Told("debug", "left from looking for a fault", "Take it out.")
_PRINTS = {
    **dict.fromkeys(SCRIPTS, r"(?<![\w.$])(?:alert|console\.(?:info|warn|error))\("),
    **dict.fromkeys((".java",), r"\bSystem\.(?:out|err)\.print(?:ln|f)?\("),
    **dict.fromkeys((".kt", ".kts", ".scala", ".groovy"), r"(?<![\w.])println?\("),
    ".go": r"\bfmt\.Print(?:ln|f)?\(|\blog\.Print(?:ln|f)?\(|(?<![\w.])println?\(",
    ".rs": r"(?<![\w.])e?println?!\(",
    ".cs": r"\b(?:Console|Debug|Trace)\.Write(?:Line)?\(",
    ".swift": r"(?<![\w.])(?:print|NSLog)\(",
    ".dart": r"(?<![\w.])(?:print|debugPrint)\(",
    ".php": r"(?<![\w>$:])(?:error_log|printf)\(",
    ".lua": r"(?<![\w.])print\(",
    **dict.fromkeys((".c", ".h", ".cc", ".cpp", ".cxx"), r"(?<![\w.])(?:printf|fprintf)\("),
    ".rb": r"^[ \t]*(?:puts|p|pp|print)[ (]",
    ".ex": r"\bIO\.puts\(",
    ".py": r"(?<![\w.])p?print\(|\bpprint\.p(?:print|p)\(|\blog(?:ging|ger)?\.(?:debug|info|warning|error)\(",
}
_RULES = (
    rule(DEBUG, SCRIPTS, r"(?<![\w.$])console\.(?:trace|table|dir|dirxml|count|group\w*|time(?:End|Log)?)\("),
    rule(DEBUG, JVM, r"\.printStackTrace\(\s*\)|\bThread\.dumpStack\("),
    rule(DEBUG, (".go",), r"\bspew\.\w*[dD]ump\(|\bpp\.Println\(|\bdebug\.PrintStack\(|\blitter\.Dump\("),
    rule(
        DEBUG,
        (".rb",),
        r"^[ \t]*pp?\s+[@$a-z]\w*(?:\.\w+)*\s*$|\bbinding\.(?:pry|irb|remote_pry)\b|^[ \t]*debugger\s*$"
        r"|^[ \t]*require\s+['\"](?:pry"
        r"|byebug|debug)['\"]",
    ),
    rule(
        DEBUG,
        (".php",),
        r"(?<![\w>$:])(?:print_r|var_export|debug_zval_refcount|debug_print_backtrace|dump|dd"
        r"|xdebug_break)\s*\((?![^;]*,\s*true\s*\))",
    ),
    rule(DEBUG, (".swift",), r"(?<![\w.])(?:dump|debugPrint)\("),
    rule(DEBUG, (".dart",), r"(?<![\w.])debugger\("),
    rule(DEBUG, (".ex", ".exs"), r"\bIO\.inspect\(|\|>\s*IO\.inspect|(?<![\w.])dbg\("),
    rule(DEBUG, (".sql",), r"(?i)\braise\s+(?:notice|debug|info)\s+'(?:here|debug|test|x+|>+|\w+\s*[:=]?\s*%)"),
    rule(DEBUG, (".py",), r"__import__\(\s*['\"]\w*pdb['\"]\s*\)\."),
    rule(
        DEBUG,
        SHELLS,
        r"^[ \t]*set\s+-(?:x|v|xv|vx)\s*$|^[ \t]*echo\s+[\"']?(?:DEBUG|debug|here|HERE|XXX|>>>|###"
        r"|\w+\s*[:=]\s*\$\{?\w+\}?)[\"']?\s*$",
    ),
    rule(
        DEBUG,
        (".py",),
        r"\bcode\.interact\(|\btraceback\.print_stack\(|\bsys\.settrace\(|^[ \t]*(?:import|from)\s+(?:\w*pdb|pudb|icecream|snoop"
        r"|pysnooper|hunter|pydevd\w*|birdseye|q)\b",
        r"\bpydevd(?:_pycharm)?\.settrace\(|@(?:snoop|pysnooper\.snoop)\b|\bIPython\.embed\(|\bset_trace\(",
        bare=True,
    ),
)
_MEANT = re.compile(r"eslint-disable|biome-ignore|ignore:|noqa|nolint|rubocop:disable|T20[13]")
_TOOL = re.compile(
    r"(?:^|/)(?:cli|cmd|bin|scripts?|tools?|examples?|samples?|demos?|benchmarks?|bench|main|manage|setup|commands?|management"
    r"|ci|hack|docs?|__main__|console|report\w*|\w*cli|\w*_main)(?:[/.]|$)",
    re.IGNORECASE,
)
_MAIN = re.compile(
    r"\bfunc main\(|\bfn main\(|\bvoid main\(|\bint main\(|\bfun main\(|\bargparse\b|__main__|\bclick\b|\btyper\b"
    r"|static void Main|import sys\.argv|^#!|\bprocess\.argv\b|@main\b|object Main",
    re.MULTILINE,
)
# Words that say nothing of what is printed.
_NOISE = frozenset(
    [
        "here",
        "there",
        "got",
        "is",
        "was",
        "now",
        "val",
        "value",
        "values",
        "of",
        "at",
        "in",
        "on",
        "to",
        "the",
        "a",
        "an",
        "debug",
        "dbg",
        "test",
        "testing",
        "tmp",
        "foo",
        "bar",
        "baz",
        "xxx",
        "asdf",
        "wtf",
        "why",
        "hello",
        "hi",
        "ok",
        "x",
        "y",
        "z",
        "i",
        "j",
        "called",
        "call",
        "calling",
        "entering",
        "enter",
        "leaving",
        "exit",
        "before",
        "after",
        "start",
        "end",
        "done",
        "reached",
        "checkpoint",
        "step",
        "dump",
        "log",
        "trace",
        "print",
        "see",
        "look",
        "result",
        "res",
        "data",
        "obj",
        "object",
        "var",
        "type",
        "len",
        "size",
        "function",
        "method",
        "inside",
        "loop",
        "iter",
        "line",
        "nil",
        "null",
        "true",
        "false",
        "this",
        "self",
        "not",
        "s",
        "d",
        "v",
        "w",
        "q",
        "p",
        "r",
        "n",
        "t",
        "f",
    ]
)
_LOST = frozenset(["here", "there", "debug", "dbg", "foo", "bar", "baz", "xxx", "asdf", "wtf", "reached", "checkpoint"])
_LOUD = re.compile(r"^\W*(?:DEBUG|XXX|HERE|>>>|###|!!!|\*\*\*|===|---|debug\b|here\b|got here|asdf|test\b|wtf)")
_FORMAT = re.compile(r"%[-+#0]*\d*\.?\d*[a-zA-Z]|\{[^{}]*\}|\$\{[^{}]*\}|\$\w+|#\{[^{}]*\}|\\\([^()]*\)|\\[nt]")
_TEXT = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`")
_DUMP = re.compile(
    r"%\+v|%#v|\{:#?\?\}|\{\w+:#?\?\}|JSON\.stringify|\brepr\(|\btype\(|\bvars\(|\blocals\(|\bdir\(|inspect\b|\{\w+=\}"
    r"|\.__dict__|pprint|pp\b"
)


def debugging(source: Source) -> Iterator[Found]:
    """Find what is left from debugging on new lines of a file."""
    lines = source.rows
    for found in of_rules(_RULES, source):
        if not _MEANT.search(lines[found.line - 1]):
            yield found
    pattern = _PRINTS.get(source.suffix)
    # What an example of Go prints is compared with what stands below it.
    if pattern is None or source.is_prose or "// Output:" in source.text:
        return
    is_tool = _TOOL.search(source.path) is not None or _MAIN.search(source.text) is not None
    for line, match in source.found(re.compile(pattern, re.MULTILINE), bare=True):
        given = _given(source, match.end())
        near = "".join(lines[max(0, line - 2) : line])
        if not _MEANT.search(near) and _is_debugging(given, match[0], source, line, is_tool=is_tool):
            yield Found(DEBUG, line)


def _given(source: Source, start: int) -> str:
    """Give what stands between the parentheses of a call, or to the end of its line."""
    bare = source.blanked.bare
    depth, place = 1, start
    while place < len(bare) and place - start < 1000 and depth:
        depth += {"(": 1, ")": -1}.get(bare[place], 0)
        if bare[place] == "\n" and depth == 1 and bare[start - 1] != "(":
            break
        place += 1
    return source.text[start : place - (depth == 0)]


def _is_debugging(given: str, called: str, source: Source, line: int, *, is_tool: bool) -> bool:
    texts = [text[1:-1] for text in _TEXT.findall(given)]
    is_logging = "log" in called
    if texts and _LOUD.match(texts[0]) and (not is_logging or not texts[0].lower().startswith(("test", "---", "==="))):
        return not is_tool or texts[0][:5].upper() == texts[0][:5]
    if is_logging or not given.strip():
        return False
    rest = _TEXT.sub(" ", given)
    names = set(re.findall(r"[a-z_]\w*", (rest + " " + " ".join(_FORMAT.findall(" ".join(texts)))).lower()))
    words = [word for text in texts for word in re.findall(r"[^\W\d_]+", _FORMAT.sub(" ", text).lower())]
    if is_tool:
        # A tool prints for a living: only what a person would never want to read is left over.
        return _DUMP.search(given) is not None and not words and source.suffix != ".py"
    parts = {part for name in names for part in (name, *name.split("_"))}
    if any(word not in _NOISE and word not in parts for word in words) or not (names or texts):
        return False
    if source.suffix == ".py" and not texts:
        return _DUMP.search(given) is not None or _is_in_computing(source, line)
    return bool(names) or any(word in _LOST for word in words)


def _is_in_computing(source: Source, line: int) -> bool:
    """Say whether a line of Python stands in a function that gives something back, and so is no command that shows it."""
    for node in ast.walk(source.tree) if source.tree is not None else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.lineno <= line <= (node.end_lineno or line):
            given = [one.value for one in ast.walk(node) if isinstance(one, ast.Return) and one.value is not None]
            return any(not isinstance(value, ast.Constant) for value in given) and not re.search(
                r"print|show|main|report|display|dump|cmd|command|run|echo", node.name
            )
    return False
