"""Checks that a change loosens: steps that may fail, limits that go down, rules that are turned off, and whole files left out."""

import re
from collections.abc import Iterator

from decklog.review.rules.rule import RECIPES, SETTINGS, SHELLS, Found, Told, of_rules, rule
from decklog.review.rules.source import Source

LOOSE = Told("weakened-check", "a check may fail and nobody is stopped by it", "Let it stop the build.")
LOWER = Told("weakened-check", "a limit is looser than before", "Keep it, or have a person say why.")
OFF = Told("weakened-check", "rules of a checker are turned off", "Mend what they find, or name the one rule and the one place.")
GONE = Told("weakened-check", "a check is no longer run", "Keep it, or have a person say why.")
LEFT_OUT = Told("suppressed", "a whole file, or every rule, is left out of a check", "Name the one rule, at the one line.")
_CHECKERS = (
    r"(?:pytest|unittest|tox|nox|mypy|pyright|ruff|flake8|pylint|black|isort|bandit|pip-audit|safety|coverage|jest|vitest|mocha"
    r"|cypress|playwright|eslint|tsc|prettier|biome"
    r"|npm (?:run )?(?:test|lint|audit|ci|typecheck|build)|yarn (?:run )?(?:test|lint|audit|typecheck)|pnpm (?:run )?(?:test"
    r"|lint|audit)|cargo (?:test|clippy|fmt|audit|check)"
    r"|go (?:test|vet)|golangci-lint|staticcheck|gosec|make (?:test|lint|check)|mvn\b[^\n|;&]*(?:test|verify)|gradlew? [^\n"
    r"|;&]*(?:test|check)|rspec|rubocop|phpunit|phpstan"
    r"|dotnet test|ctest|shellcheck|hadolint|trivy|semgrep|snyk|gitleaks|swiftlint|ktlint|terraform (?:validate|plan)|tflint"
    r"|checkov|helm lint|sqlfluff)"
)
_BUILDS = (
    *SETTINGS,
    *RECIPES,
    *SHELLS,
    ".gradle",
    ".rb",
    ".js",
    ".cjs",
    ".mjs",
    ".ts",
    ".rc",
    ".eslintrc",
    ".coveragerc",
    ".flake8",
    ".pylintrc",
    ".groovy",
)

_RULES = (
    rule(
        LOOSE,
        _BUILDS,
        r"(?:^|[{\s,-])(?:continue-on-error|allow_failure|allowFailure|soft_fail|continueOnError|ignoreFailures"
        r"|testFailureIgnore)['\"]?\s*[:=]\s*(?:true|yes)\b",
        r"(?:^|[{\s,-])(?:failOnError|fail_ci_if_error|failIfNoTests)['\"]?\s*[:=]\s*false\b",
        rf"\b{_CHECKERS}\b[^\n]*?(?:\|\|\s*(?:true|:|exit 0|echo\b|/bin/true)|;\s*(?:true|exit 0)\b|--exit-zero\b"
        rf"|--no-error-on-\w+|--exit-code[= ]0|--no-fail\w*\b)",
        rf"^\t\s*-@?\s*{_CHECKERS}\b",
        r"--exit-zero\b|--passWithNoTests\b|--no-verify\b|--warn-only\b|--continue-on-collection-errors\b|\bHUSKY\W{1,3}0\b",
        r"^[ \t]*if:\s*(?:\$\{\{\s*)?false\b|^[ \t]*when:\s*never\s*$|^[ \t]*<(?:testFailureIgnore|failOnViolation"
        r"|haltOnFailure)>\s*(?:true|false)|catchError\(\s*buildResult:\s*'SUCCESS'",
        r"(?i)^[ \t]*(?:-[ \t]*)?(?:fail_on_error|failOnViolation|failOnWarning|fail_level|break_build|abortOnError"
        r"|warningsAsErrors"
        r"|TreatWarningsAsErrors)\s*[:=>]+\s*['\"]?(?:false|none|never)",
    ),
    rule(
        OFF,
        (*SETTINGS, ".js", ".cjs", ".mjs", ".ts", ".rc", ".eslintrc", ".pylintrc", ".flake8", ".coveragerc", ".gradle"),
        r"^[ \t]*['\"]?(?:strict\w*|noImplicit\w+|disallow_\w+|warn_\w+|check_untyped_defs|no_implicit_\w+|alwaysStrict"
        r"|noUnused\w+|noUncheckedIndexedAccess)['\"]?\s*[:=]\s*(?:false|False|no)\b",
        r"^[ \t]*(?:ignore_errors|ignore_missing_imports|allow_untyped_\w+|skipLibCheck"
        r"|follow_imports\s*=\s*['\"]?skip)\b\s*[:=]\s*(?:true|True|yes)\b",
        r"^[ \t]*['\"][@\w/-]+['\"]\s*:\s*\[?\s*(?:['\"]off['\"]|0\b(?!\.))(?=[\s,\]}])",
        r"(?i)^[ \t]*(?:extend-)?(?:ignore|disable)\s*=\s*(?:\[\s*)?['\"]?(?:ALL|all|[A-Z])['\"]?\s*(?:[\],]|$)"
        r"|^[ \t]*disable-all\s*[:=]\s*true|^[ \t]*DisabledByDefault:\s*true|^[ \t]*Enabled:\s*false",
        r"\"typeCheckingMode\"\s*:\s*\"off\"|\bignoreBuildErrors\s*:\s*true|ignoreDuringBuilds\s*:\s*true"
        r"|\bstrict\s*[:=]\s*['\"]?off",
    ),
    rule(
        LEFT_OUT,
        (),
        r"(?m)^[ \t]*#!\[allow\(\s*(?:warnings|unused|dead_code|clippy::all|clippy::\w+|unsafe_code)\b"
        r"|@SuppressWarnings\(\s*\{?\s*\"(?:all|unchecked\"\s*,|rawtypes\"\s*,)|@file:Suppress\(\s*\"(?:ALL|all|UNCHECKED)",
        r"^[ \t]*#\s*pragma\s+(?:warning\s+disable\s*$|GCC diagnostic ignored\b)",
    ),
)
# Said in comments, which are no code.
_NOTES = re.compile(
    r"""(?xi)
    ^\#\s*(?:ruff|flake8):\s*noqa\s*$ | ^\#\s*noqa\s*$ | ^\#\s*mypy:\s*ignore-errors
    | ^\#\s*pylint:\s*(?:skip-file|disable=all)
    | ^\#\s*pyright:\s*(?:ignore\s*$|basic|false)
    | ^//\s*@ts-nocheck | ^/[/*]\s*@ts-ignore\s*(?:\*/)?$ | ^/\*\s*eslint-disable\s*\*/
    | ^/[/*]+\s*eslint-disable(?:-next-line|-line)?\s*(?:\*/)?$
    | ^/[/*]\s*(?:tslint|jshint|jscs|biome-ignore-all|prettier-ignore-file):?\s*(?:disable|ignore)
    | ^//\s*nolint\s*$ | ^//\s*nolint:all | ^\#\s*rubocop:(?:disable|todo)\s+all | ^//\s*(?:CHECKSTYLE:OFF|NOSONAR)\s*$
    | ^//\s*swiftlint:disable\s+all | ^//\s*phpcs:(?:ignoreFile|disable)
    | ^\#\s*shellcheck\s+disable=all | ^\#\s*type:\s*ignore-errors | ^/\*\s*istanbul\s+ignore\s+(?:file|next)\s*\*/$
    | ^\#\s*coverage:\s*(?:off|ignore) | ^\#\s*nosec\s*$
    """
)
# What nobody wrote line by line is data, whatever words it has.
_LONGEST = 2000
_LIMIT = re.compile(
    r"(?i)(?P<name>fail[_-]under|cov-fail-under|min(?:imum)?[_-]?coverage|coverage[_-]?threshold|threshold|target|branches"
    r"|functions|lines|statements|minimum"
    r"|max[_-]?(?:warnings|complexity|line-?length|lines|args|statements|branches|depth|params|cyclomatic\w*)"
    r"|cyclomatic_complexity|audit-level|severity|timeout-minutes|retries|reruns|flaky)"
    r"['\"]?\s*(?:[:=>]|\s)\s*\[?['\"]?(?:error['\"]?\s*,\s*)?(?P<value>\d+(?:\.\d+)?)"
)
_LOOSER_UP = re.compile(r"(?i)^(?:max|cyclomatic|retries|reruns|flaky)")
_NO_LIMIT = re.compile(r"(?i)^(?:timeout|severity|audit)")


def weakened_checks(source: Source) -> Iterator[Found]:
    """Find what loosens a check in the new lines of a file, and limits and steps that were otherwise before."""
    yield from of_rules(_RULES, source)
    if source.is_prose:
        return
    for line, note in source.notes():
        if _NOTES.search(note.strip()):
            yield Found(LEFT_OUT, line)
    if source.before and _is_of_build(source):
        yield from _limits(source)
        yield from _steps(source)


def _is_of_build(source: Source) -> bool:
    return source.suffix in _BUILDS or source.name.lower().startswith((*RECIPES, "tox", ".")) or "config" in source.name.lower()


def _limits(source: Source) -> Iterator[Found]:
    """Compare limits of the same name in their order, as they go and come."""
    gone, come = (
        [
            (m["name"].lower(), float(m["value"]), one.number)
            for one in source.lines
            if one.sign == sign and len(one.text) < _LONGEST
            for m in _LIMIT.finditer(one.text)
        ]
        for sign in "-+"
    )
    for name, value, _ in gone:
        if _NO_LIMIT.match(name):
            continue
        new = next((one for one in come if one[0] == name), None)
        if new is None:
            continue
        come.remove(new)
        if new[1] > value if _LOOSER_UP.match(name) else new[1] < value:
            yield Found(LOWER, new[2])


def _steps(source: Source) -> Iterator[Found]:
    """Find programs that check and are no longer named in the file at all."""
    checker = re.compile(rf"\b{_CHECKERS}\b")
    lists = re.compile(r"(?m)^[ \t]*['\"]?(?:select|extend-select|enable|linters|rules)['\"]?\s*[:=]\s*\[(.*)\]")
    was, now = (
        {item for items in lists.findall(text) for item in re.findall(r"[\w-]+", items)} for text in (source.before, source.text)
    )
    if was and (now < was or ("ALL" in was and "ALL" not in now)):
        yield Found(OFF, next((one.number for one in source.lines if one.sign == "+"), 1))
    gone = {
        m[0]
        for one in source.lines
        if one.sign == "-" and not one.text.lstrip().startswith("#") and len(one.text) < _LONGEST
        for m in checker.finditer(one.text)
    }
    lost = sorted(word for word in gone if word not in source.blanked.code)
    come = {m[0] for one in source.lines if one.sign == "+" for m in checker.finditer(one.text)}
    # Another checker in its place is a choice.
    if len(lost) > len(come - gone):
        first = next((one for one in source.lines if one.sign == "-"), None)
        yield Found(GONE, first.number if first is not None else 1)
