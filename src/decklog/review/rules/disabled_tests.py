"""Tests that a change turns off, singles out, empties or takes away, in any language, by how they are spelled."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from decklog.conductor.git.changes import Line
from decklog.review.rules.rule import JVM, RECIPES, SCRIPTS, SETTINGS, SHELLS, Found, Told, of_rules, rule
from decklog.review.rules.source import Source

DISABLED = Told("disabled-test", "a test is turned off", "Mend what it shows, or name where that is followed up.")
FOCUSED = Told("disabled-test", "one test is singled out: all others are left out", "Take it out.")
VACUOUS = Told("vacuous-test", "it holds whatever the code does", "Have it look at what the code gives.")
WEAKENED = Told("weakened-test", "less is looked at than before", "Keep what the test looked at, or say why it is no longer so.")
REMOVED = Told("removed-test", "tests go, and no others come", "Keep them, or say why they are no longer so.")
_TRUE = r"(?:true|True|TRUE|1|!0|!false|not False|\"[^\"\n]*\"|'[^'\n]*')"
_LINK = re.compile(r"https?://|#\d+|\b[A-Z][A-Z0-9]+-\d+\b|\bgh-\d+")

_RULES = (
    rule(FOCUSED, SCRIPTS, r"(?<![\w.])(?:it|test|describe|context|suite|specify)\.only\b|(?<![\w.])f(?:it|describe|context)\("),
    rule(FOCUSED, (".rb",), r"^[ \t]*f(?:it|describe|context)\s+['\"]|\bfocus:\s*true\b|,\s*:focus\b"),
    rule(
        DISABLED,
        SCRIPTS,
        r"(?<![\w.])(?:it|test|describe|context|suite|specify|bench)(?:\.concurrent)?\.(?:skip|todo|fixme|failing)\b(?!If)"
        r"|(?<![\w.])x(?:it|test|describe|context|specify)\s*\(",
        r"\bthis\.skip\(\)|(?<![\w.])pending\(\s*['\")]|\bt\.skip\(",
    ),
    rule(
        DISABLED,
        (".rb",),
        r"^[ \t]*x(?:it|describe|context|specify)\s+['\"]|^[ \t]*(?:skip|pending)(?:\s+['\"(]|\s*$)|\bskip:\s*(?:true|['\"])",
    ),
    rule(DISABLED, (".rs",), r"#\[\s*ignore\b|#\[cfg\(\s*any\(\s*\)\s*\)\]|cfg_attr\(\s*all\(\s*\)\s*,\s*ignore"),
    rule(
        DISABLED,
        JVM,
        r"@(?:[\w.]+\.)?(?:Disabled|Ignore|Ignored)\b(?!\w)|\benabled\s*=\s*false\b|\bassumeTrue\(\s*false|\bassumeFalse\(\s*true",
    ),
    rule(
        DISABLED,
        (".cs",),
        r"\[\s*(?:Fact|Theory|Test)\w*\([^\]]*\bSkip\s*=|\[\s*(?:\w+\s*,\s*)*Ignore\b|Assert\.(?:Ignore|Inconclusive)\(",
    ),
    rule(DISABLED, (".php",), r"->markTest(?:Skipped|Incomplete)\(|@group\s+(?:skip|disabled)"),
    rule(DISABLED, (".swift",), r"\bthrow\s+XCTSkip\b|\.disabled\(|func\s+(?:disabled_|x)test"),
    rule(DISABLED, (".ex", ".exs"), r"@(?:module)?tag\s+(?::skip|skip:)"),
    rule(DISABLED, (".go",), r"^func\s+(?:_|x|X|Disabled|skip)_?Test\w*\(\s*t\b|^//go:build\s+ignore"),
    rule(DISABLED, (".bats", ".sh", ".bash"), r"^[ \t]*skip(?:\s+['\"]|\s*$)"),
    rule(DISABLED, (".js", ".cjs", ".mjs", ".ts"), r"\btestPathIgnorePatterns\b|\bpassWithNoTests\s*:\s*true"),
    rule(DISABLED, (".cc", ".cpp", ".cxx"), r"\bTEST(?:_F|_P)?\(\s*\w+\s*,\s*DISABLED_|\bGTEST_SKIP\(\)"),
    rule(
        DISABLED,
        (*SETTINGS, *RECIPES, *SHELLS, ".gradle", ".kts"),
        r"(?i)-D(?:maven\.test\.skip|skipTests|skipITs)\b(?!=false)|<skip(?:Tests|ITs)?>\s*true|maven\.test\.skip\W{1,4}true"
        r"|-x\s+test\b|--passWithNoTests\b",
        r"(?i)--(?:deselect|ignore(?:-glob)?)[= ]\S*test|-k\s+['\"]?not\s|testPathIgnorePatterns|\bcollect_ignore"
        r"|--exclude-(?:tests|task)\b|--skip-tests\b",
        r"(?i)\btest(?:s)?['\"]?\s*:\s*['\"](?:exit 0|true|echo\b[^\"'&|;]*|:)['\"]|tests?\.enabled\s*=\s*false"
        r"|\bonlyIf\s*\{\s*false",
        r"^[ \t]*(?:-[ \t]*)?go\s+test\b[^\n]*\s-(?:run[= ]['\"]?(?:XXX|NONE|\^\$)|skip[= ])",
    ),
    rule(
        VACUOUS,
        (),
        rf"\bexpect\(\s*{_TRUE}\s*\)\s*\.?(?:to\w*|not)\b|\b(?:assert|assertTrue|assert_true|assertThat|IsTrue|XCTAssert"
        rf"|XCTAssertTrue|expect_true)\s*!?\s*\(\s*{_TRUE}\s*[,)]",
        r"\bAssert\.(?:True|IsTrue|Pass|That)\(\s*(?:true\s*[,)]|\))|^[ \t]*assert\s+(?:true|True|1)\s*(?:,|$)"
        r"|\bdebug_assert!\(\s*true",
        r"(?:\b(?:assert(?:_?equals?|_eq|Same|_same|_equal)?|assertEqual|AreEqual|Equal|strictEqual|deepEqual|XCTAssertEqual"
        r"|EXPECT_EQ|ASSERT_EQ|is)!?)\(\s*(?:t\s*,\s*)?(?P<one>[\w.\"'()\[\]]+)\s*,\s*(?P=one)\s*[,)]",
        r"\bexpect\(\s*(?P<two>[\w.\"'\[\]]+)\s*\)\.(?:to(?:Be|Equal|StrictEqual|MatchObject)|to\.(?:be|equal|eq|eql)"
        r"|to eq)\s*[( ]\s*(?P=two)\s*(?:\)|$)",
        r"\bassert!?\(?[^\n]*(?:\|\||\bor\b)\s*(?:true|True)\b|\.length\)?\.?(?:toBeGreaterThanOrEqual\(\s*0|\s*>=\s*0)",
        r"\b(?:EXPECT|ASSERT)_TRUE\(\s*(?:true|1)\s*\)",
        rf"\bassert\.(?:ok|isTrue|isOk|true)\(\s*{_TRUE}\s*[,)]"
        r"|\bassert\.(?:equal|deepStrictEqual|notStrictEqual)\(\s*(?P<three>[\w.\"'\[\]]+)\s*,\s*(?P=three)\s*[,)]",
    ),
)
# A skip that depends on something is no test that is turned off.
_GO_SKIP = re.compile(r"^(?P<in>[ \t]*)(?:t|b|s\.T\(\))\.Skip(?:f|Now)?\(", re.MULTILINE)
_ASSERTION = re.compile(
    r"\b(?:assert\w*!?|expect\w*|should\w*|verify\w*|require\w*|XCTAssert\w*|EXPECT_\w+|ASSERT_\w+|Assert\.\w+|t\.(?:Error"
    r"|Fatal|Fail)\w*|check\w*|ensure\w*|fail|raises|throws)\b"
)
_WEAK = re.compile(
    r"toBeDefined|toBeTruthy|toBeFalsy|not\.toBeNull|not\.toBeUndefined|not\.toThrow|toBeInstanceOf|assertNotNull"
    r"|assertIsNotNone|assertTrue|IsNotNull|NotNil"
    r"|is not None|isinstance\(|\.is_ok\(\)|\.is_some\(\)|toBeGreaterThan|toContain|assertIn\b|AssertNotNull|expect\.anything"
    r"|expect\.any\("
)
_STRICT = re.compile(
    r"==|toBe\(|toEqual|toStrictEqual|assertEqual|assert_eq|AreEqual|assertThat|\bEqual\(|strictEqual|deepEqual|to eq\b|\.Equal\b"
)
_NAMES = re.compile(
    r"^[ \t]*(?:async\s+)?def\s+(test\w*)|^[ \t]*func\s+(Test\w+)\(|(?<![\w.])(?:it|test|specify)\s*\(\s*(['\"`][^'\"`\n]+)"
    r"|#\[(?:\w+::)?test\]\s*(?:async\s+)?fn\s+(\w+)"
    r"|@Test\b[^{;]{0,400}?\b(?:void|fun|def)\s+(`[^`]+`|\w+)|^[ \t]*(?:it|specify|test)\s+(['\"][^'\"\n]+)|\[(?:Fact|Theory"
    r"|Test\w*)\b[^{;]{0,400}?\b(\w+)\s*\(|function\s+(test\w+)\(",
    re.MULTILINE,
)
_OPENINGS = {
    **dict.fromkeys(
        SCRIPTS,
        re.compile(
            r"(?<![\w.])(?:it|test|specify)\(\s*(?:\"[^\"\n]*\"|'[^'\n]*'|`[^`]*`)\s*,\s*(?:async\s*)?(?:\([^()]*\)\s*=>"
            r"|\w+\s*=>|function\s*\w*\([^()]*\))\s*\{"
        ),
    ),
    ".go": re.compile(r"^func\s+Test\w*\(\s*\w+\s+\*testing\.T\s*\)\s*\{", re.MULTILINE),
    ".rs": re.compile(r"#\[(?:tokio::)?test\]\s*(?:async\s+)?fn\s+\w+\(\s*\)\s*\{"),
    **dict.fromkeys((".java", ".kt", ".scala", ".groovy"), re.compile(r"@Test\b(?!\s*\([^)]*expected)[^{;]{0,200}\{")),
    ".cs": re.compile(r"\[(?:Fact|Test|TestMethod)\][^{;\[]{0,200}\{"),
    ".php": re.compile(r"function\s+test\w*\([^)]*\)[^{]*\{"),
    ".swift": re.compile(r"func\s+test\w*\([^)]*\)[^{]*\{"),
}
# Words of tests that look by other means: helpers, mocks, snapshots, a panic, an error that is given on.
_LOOKING = re.compile(
    r"(?i)match|snapshot|compare|approve|golden|equal|\bcy\.|panic|unwrap|expect|\?;|\bt\.Run\(|\bmust|diff|should|fail|throw"
    r"|test\w*\(|helper|waitFor|getBy|findBy|toHave|run\w*\(t\b|\(t,|\(t\)"
)
_EXPECTED = re.compile(
    r"(?m)^[ \t]*(?:(?:const|let|var|val|auto|final)\s+)?(?:[A-Z]\w*\s+|int\s+|double\s+|String\s+)?"
    r"(?P<name>expected\w*|want\w*)\s*(?::\s*\w+)?\s*:?=\s*(?P<value>[^\n]{4,})$"
)
_STOOD_IN = re.compile(
    r"\bspyOn\(\s*[\w.]+\s*,\s*['\"](?P<name>\w+)['\"]\s*\)\s*\.mock(?:Return|Resolved|Rejected|Implementation)\w*\("
    r"|\b[\w.]+\.(?P<given>\w+)\s*=\s*(?:jest|vi)\.fn\("
)
_NEAR = 12
_ROW = re.compile(r"(?m)^[ \t]*(\[(?:InlineData|TestCase|DataRow)\([^\n]*\)\]|\{[^\n{}]*\}),?[ \t]*$")
_LISTED = re.compile(r"@(?:Value|Csv)Source\([^{)]*\{([^}]*)\}|\.each\(\s*\[([^;]*?)\]\s*\)\s*\(")
_TOLERANCE = re.compile(
    r"\b(abs|rel|delta|tolerance|atol|rtol|epsilon|eps|abs_tol|rel_tol|within"
    r"|margin)\s*[=:(]\s*(\d[\d_]*(?:\.\d+)?(?:e[-+]?\d+)?)"
)

_DECLARED = re.compile(r"\b(?:def|class|function|func|fn|fun)\s+(\w+)")


def disabled_tests(source: Source) -> Iterator[Found]:
    """Find tests that are turned off, or say nothing, in the new lines of a file, and those that look at less than before."""
    lines = source.rows
    for found in of_rules(_RULES, source):
        near = "\n".join(lines[max(0, found.line - 2) : found.line + 1])
        if found.told is VACUOUS and source.is_python:
            # Its syntax says more.
            continue
        if (_has_tests(source) or found.told is not VACUOUS) and not (found.told.kind == "disabled-test" and _LINK.search(near)):
            yield found
    if source.suffix == ".go":
        yield from _skips_of_go(source)
    if not _has_tests(source):
        return
    yield from _says_nothing(source)
    if not source.is_python:
        yield from (Found(VACUOUS, line) for line in (*_expects_itself(source), *_asks_what_it_made_up(source)))
    if source.before:
        yield from _weakened(source)
        if not source.is_python:
            yield from _fewer_cases(source)


def _has_tests(source: Source) -> bool:
    # Tests of Rust stand beside what they try.
    return source.is_test or (source.suffix == ".rs" and "#[test]" in source.text + source.before)


def _says_nothing(source: Source) -> Iterator[Found]:
    """Find tests whose bodies look at nothing, in languages where a body stands between braces."""
    opening = _OPENINGS.get(source.suffix)
    for line, match in source.found(opening, bare=True) if opening is not None else ():
        body = _body(source, match.end())
        if body is not None and not _ASSERTION.search(body) and not _LOOKING.search(body):
            yield Found(VACUOUS, line)


def _expects_itself(source: Source) -> Iterator[int]:
    """Find claims that a call gives what the line before took from the same call and named what is expected."""
    for line, match in source.found(_EXPECTED):
        following = source.rows[line : line + 2]
        taken = match["value"].strip().rstrip(";").removeprefix("await ")
        for offset, row in enumerate(following, line + 1):
            is_claim = _ASSERTION.search(row) is not None or re.search(rf"[!=]=\s*{match['name']}\b", row) is not None
            if "(" in taken and taken in row and re.search(rf"\b{match['name']}\b", row) and is_claim:
                yield offset


def _asks_what_it_made_up(source: Source) -> Iterator[int]:
    """Find claims about a call of the very thing for which the test has put something else."""
    for line, match in source.found(_STOOD_IN):
        name = match["name"] or match["given"]
        asked = re.compile(rf"\b(?:expect|assert\w*(?:\.\w+)?)\(\s*(?:await\s+)?[\w.]*\b{re.escape(name)}\(")
        for offset, row in enumerate(source.rows[line : line + _NEAR], line + 1):
            if asked.search(row):
                yield offset
                break


def _body(source: Source, start: int) -> str | None:
    """Give what stands between the brace before a place and its other half; null where it goes on for too long to tell."""
    bare = source.blanked.bare
    depth = 1
    for place in range(start, min(len(bare), start + 8000)):
        depth += {"{": 1, "}": -1}.get(bare[place], 0)
        if not depth:
            return bare[start:place]
    return None


def _skips_of_go(source: Source) -> Iterator[Found]:
    for line, match in source.found(_GO_SKIP):
        above = source.text[: match.start()].rstrip().rpartition("\n")[2].strip()
        # In the body of a condition it is meant for some machines alone.
        if not re.match(r"(?:\}\s*else|if|case|switch|default)\b", above) and not _LINK.search(source.text.split("\n")[line - 1]):
            yield Found(DISABLED, line)


def _weakened(source: Source) -> Iterator[Found]:
    """Compare what assertions of a file go and come: fewer of them, or weaker ones in place of exact ones."""
    gone = [line for line in source.lines if line.sign == "-" and _ASSERTION.search(line.text)]
    come = [line for line in source.lines if line.sign == "+" and _ASSERTION.search(line.text)]
    if not gone or not source.text.strip():
        return
    if (looser := _looser(gone, come)) is not None:
        yield Found(WEAKENED, looser)
    weak = [line for line in come if _WEAK.search(line.text)]
    was_strict, is_strict = (
        sum(_STRICT.search(line.text) is not None and _WEAK.search(line.text) is None for line in some) for some in (gone, come)
    )
    if len(come) < len(gone) or (weak and is_strict < was_strict and not any(_WEAK.search(line.text) for line in gone)):
        yield Found(WEAKENED, (weak or gone)[0].number)


def _fewer_cases(source: Source) -> Iterator[Found]:
    """Find lists of cases that are shorter than before, where no test goes and the cases are nowhere else in the file."""
    before, after = (Counter(_cases(text)) for text in (source.before, source.text))
    gone, come = before - after, after - before
    is_kept = len(names_of_tests(source.text)) >= len(names_of_tests(source.before))
    if is_kept and gone.total() > come.total() and source.text.strip() and not all(case in source.text for case in gone):
        yield Found(WEAKENED, next((line.number for line in source.lines if line.sign == "-"), 1))


def _cases(text: str) -> list[str]:
    """Give the cases of a file of tests: rows of tables, and what stands in lists that a test is run with."""
    found = [match[1].strip() for match in _ROW.finditer(text)]
    for match in _LISTED.finditer(text):
        inner = next(group for group in match.groups() if group is not None)
        found += re.findall(r"\[[^\[\]]*\]", inner) or re.findall(r"\"[^\"\n]*\"|'[^'\n]*'|[\w.-]+", inner)
    return found


def _looser(gone: Sequence[Line], come: Sequence[Line]) -> int | None:
    """Find a claim that is let off more than before: a tolerance that grew."""
    before, after = (
        [(m[1], float(m[2]), one.number) for one in some for m in _TOLERANCE.finditer(one.text)] for some in (gone, come)
    )
    for (name, value, _), (same, new, line) in zip(before, after, strict=False):
        if name == same and new > value:
            return line
    return None


def names_of_tests(text: str) -> list[str]:
    """Name the tests of a file, by how tests are spelled in any language."""
    return [next(group for group in found.groups() if group) for found in _NAMES.finditer(text)]


def removed_tests(files: Sequence[Source]) -> Iterator[tuple[str, Found]]:
    """Find files that have fewer tests than before, of which some are nowhere in the change."""
    tests = [one for one in files if one.is_test]
    before = {one.path: names_of_tests(one.before) for one in tests}
    after = {one.path: names_of_tests(one.text) for one in tests}
    kept = {name for names in after.values() for name in names}
    for path, names in before.items():
        if any(name not in kept for name in names) and len(after[path]) < len(names):
            yield path, Found(REMOVED, 1)


def is_explained(source: Source, files: Sequence[Source]) -> bool:
    """Say whether what a file of tests looks at no more is looked at in another file, or was of code that is gone."""
    gone = [line.text for line in source.lines if line.sign == "-" and _ASSERTION.search(line.text)]
    missing = set(names_of_tests(source.before)) - set(names_of_tests(source.text))
    heirs = [one for one in files if one is not source and one.is_test]
    heirs = [one for one in heirs if missing & (set(names_of_tests(one.text)) - set(names_of_tests(one.before)))]
    moved = {line.text.strip() for one in heirs for line in one.lines if line.sign == "+"}
    lost = {name for one in files if not one.is_test for name in _DECLARED.findall(one.before)}
    lost -= {name for one in files for name in _DECLARED.findall(one.text)}
    left = [text for text in gone if text.strip() not in moved and not lost & set(re.findall(r"\w+", text))]
    come = sum(line.sign == "+" and _ASSERTION.search(line.text) is not None for line in source.lines)
    return len(left) <= come and len(left) < len(gone)
