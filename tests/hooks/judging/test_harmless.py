"""What needs no judge is what the judge would allow; and it is what agents run most."""

from hypothesis import given, settings
from hypothesis import strategies as st

from decklog.guard.policy import Decision, judge
from decklog.hooks.judging import _OPTIONS, is_harmless_command
from tests.guard.policy.corpora import DANGEROUS, HARMLESS, cases
from tests.searches import examples

ROOT = "/srv/repository"
WORDS = ("src", "a.py", "src/b/c.ts", "HEAD", "main", "./...", ".", "..", "../x", "/etc/passwd", "~", ".env", "id_rsa", "x.pem")
WORDS += ("5", "-x", "-exec", "--output", "-o", "--upload-pack", "foo,bar", "a:b", "HEAD:x", "+main", ".git/hooks/x")
WORDS += ("secrets.json", "--ext-diff")


def allowed(command: str) -> bool:
    return judge(command, root=ROOT).decision is Decision.ALLOW


def commands(corpora: tuple[str, ...]) -> list[str]:
    return [case.command for name in corpora for case in cases(name)]


def test_no_dangerous_command_is_taken_for_a_plain_one() -> None:
    assert [command for command in commands(DANGEROUS) if is_harmless_command(command)] == []


def test_whatever_is_plain_is_allowed_by_the_judge() -> None:
    plain = [command for command in commands(HARMLESS) if is_harmless_command(command)]
    assert len(plain) > 50
    assert [command for command in plain if not allowed(command)] == []


@settings(max_examples=examples(300))
@given(st.sampled_from(sorted(_OPTIONS)), st.lists(st.sampled_from(WORDS), max_size=4))
def test_programs_with_any_words_are_plain_only_if_the_judge_allows_them(program: str, words: list[str]) -> None:
    for extra in (words, [*words, *_OPTIONS[program].split()]):
        command = " ".join([program, *extra])
        assert not is_harmless_command(command) or allowed(command), command


@settings(max_examples=examples(300))
@given(st.text(alphabet="ls cat git.diff-/~$;|&<>'\"\\\n", max_size=30))
def test_no_text_is_plain_unless_the_judge_allows_it(command: str) -> None:
    assert not is_harmless_command(command) or allowed(command)


def test_every_option_of_the_table_is_one_that_the_judge_allows() -> None:
    for program, options in _OPTIONS.items():
        for option in options.split():
            assert allowed(f"{program} {option} x"), f"{program} {option}"
