"""Claims for any text: a verdict always comes, soon, and no wrapping makes a denied command allowed."""

import shutil
import string
import subprocess
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decklog.guard.policy import CommandVerdict, Decision, judge
from tests.searches import examples

DENIED = st.sampled_from(
    [
        "rm -rf /",
        "rm -rf ~",
        "sudo ls",
        "git push origin main",
        "chmod 777 x",
        "cat ~/.ssh/id_rsa",
        "kill -9 -1",
        "find / -delete",
    ]
)
WRAPPERS = """bash -c '{}'|sh -c "{}"|( {} )|{{ {}; }}|if true; then {}; fi|if false; then ls; else {}; fi|while true; do {}; done
for i in 1 2; do {}; done|case x in x) {};; esac|echo $( {} )|echo "$( {} )"|ls && {}|ls; {}|{} &|! {}|time {}|nohup {}|env A=1 {}
timeout 5 {}|nice -n 3 {}|command {}|exec {}|eval '{}'|trap '{}' EXIT|f() {{ {}; }}; f|x=$( {} )|cat <( {} )|bash <<< '{}'
{} # harmless|{} > /dev/null 2>&1|A=1 {}|[[ -n $( {} ) ]]|busybox env {}|xargs -I% {} < list""".replace("\n", "|").split("|")
WRAPPERS += ["ls || {}", "ls | {}", "echo '{}' | bash", "bash <<'END'\n{}\nEND", "ls\n{}\n"]
LINE_WRAPPERS = [wrapper for wrapper in WRAPPERS if "'" not in wrapper and '"' not in wrapper]
FRAGMENTS = st.sampled_from(
    [*"|&;()<>{}$`'\"\\\n*?~=#![] ", "$(", "${", "<<E\n", "<(", "bash -c ", "rm ", "-rf ", "/", "if ", "then ", "fi", "do ", "x="]
)
DEEP = st.sampled_from(["(", "$(", "`", "a|", "a;", "{a,b}", "if x; then ", "<<A\n", "$((", "'", '"', "\\", "for i in a; do "])


@pytest.mark.slow
@given(st.text(max_size=300))
@settings(max_examples=examples(300), deadline=None)
def test_any_text_gets_a_verdict(text: str) -> None:
    assert isinstance(judge(text), CommandVerdict)


@pytest.mark.slow
@given(st.lists(FRAGMENTS, max_size=60).map("".join))
@settings(max_examples=examples(400), deadline=None)
def test_any_heap_of_shell_fragments_gets_a_verdict_soon(text: str) -> None:
    start = time.process_time()
    assert isinstance(judge(text), CommandVerdict)
    assert time.process_time() - start < 2


@pytest.mark.slow
@given(DEEP)
@settings(max_examples=examples(13), deadline=None)
def test_long_and_deep_text_is_held_soon(piece: str) -> None:
    start = time.process_time()
    verdict = judge(piece * (60_000 // len(piece)))
    assert time.process_time() - start < 5
    assert verdict.decision is not Decision.ALLOW


@given(st.lists(st.text(max_size=40), min_size=1, max_size=6))
@settings(max_examples=examples(150), deadline=None)
def test_any_list_of_arguments_gets_a_verdict(argv: list[str]) -> None:
    assert isinstance(judge(argv), CommandVerdict)


@pytest.mark.slow
@given(DENIED, st.lists(st.sampled_from(WRAPPERS), min_size=1, max_size=1))
@settings(max_examples=examples(400), deadline=None)
def test_a_wrapper_never_makes_a_denied_command_less(command: str, wrappers: list[str]) -> None:
    for wrapper in wrappers:
        command = wrapper.format(command)
    assert judge(command).decision is Decision.DENY


@given(DENIED, st.lists(st.sampled_from(LINE_WRAPPERS), min_size=2, max_size=3))
@settings(max_examples=examples(200), deadline=None)
def test_several_wrappers_never_make_a_denied_command_allowed(command: str, wrappers: list[str]) -> None:
    for wrapper in wrappers:
        command = wrapper.format(command)
    assert judge(command).decision is not Decision.ALLOW


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_what_bash_takes_for_arithmetic_is_no_command() -> None:
    for text, printed in (("echo $(( kill -9 -1 ))", "-10\n"), ("[[ -n $(( kill -9 -1 )) ]] && echo set", "set\n")):
        assert subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=True).stdout == printed
        assert judge(text).is_allowed
    # A blank between the parentheses makes it a command in a subshell.
    assert judge("echo $( ( kill -9 -1 ) )").decision is Decision.DENY


@given(DENIED, st.data())
@settings(max_examples=examples(300), deadline=None)
def test_quotes_and_backslashes_within_words_change_nothing(command: str, data: st.DataObject) -> None:
    words = command.split(" ")
    place = data.draw(st.integers(0, len(words) - 1))
    word = words[place]
    if word.startswith("~"):
        return
    cut = data.draw(st.integers(0, len(word)))
    form = data.draw(st.sampled_from(["{}''{}", '{}""{}', "'{}'{}", '"{}"{}', "$'{}'{}", "{}\\{}"]))
    if form == "{}\\{}" and (cut == len(word) or word[cut] not in string.ascii_letters + "/.-"):
        return
    words[place] = form.format(word[:cut], word[cut:])
    assert judge(" ".join(words)).decision is Decision.DENY


@given(DENIED, st.lists(st.sampled_from([" ", "  ", "\t", " \\\n "]), min_size=8, max_size=8))
@settings(max_examples=examples(150), deadline=None)
def test_white_space_changes_nothing(command: str, spaces: list[str]) -> None:
    words = command.split(" ")
    text = spaces[0].replace("\\\n", "") + "".join(word + space for word, space in zip(words, spaces[1:], strict=False))
    assert judge(text.rstrip(" \\\n\t")).decision is Decision.DENY


@given(st.sampled_from(["rm -rf /", "git push origin main", "sudo ls"]), st.sampled_from(["echo '{}'", "grep '{}' README.md"]))
def test_a_quoted_mention_stays_harmless(command: str, form: str) -> None:
    assert judge(form.format(command)).decision is Decision.ALLOW


MANY = [f"a{number}" for number in range(80)]


@pytest.mark.parametrize(
    "command",
    [
        "for a in ls pwd date id true false echo rm; do for b in -a -b -c -d -e -f -g -rf; do $a $b /; done; done",
        f"printf '%s\\n' {' '.join(MANY)} / | xargs -n1 rm -rf",
        f"parallel rm -rf ::: {' '.join(MANY)} /",
        f"rm -rf {{{','.join(MANY)},/}}",
        "python3 -c '" + ";".join(f'{name}="x"' for name in MANY * 3) + ';b="/home/dev/.ssh/id_rsa"\'',
        "awk '{" + "x=1;" * 2500 + 'system("rm -rf /")}\' f',
        "sed '" + "s/a/b/;" * 1300 + "w /etc/x' f",
        "jq '" + ".a|" * 3000 + "env' f",
        "NODE_OPTIONS='" + "--trace " * 60 + "--require=/tmp/x' node a.js",
        f"for a in {' '.join(MANY)} /; do rm -rf $a; done",
        "ls" + " | cat" * 60 + " | rm -rf /",
    ],
)
def test_what_lies_beyond_a_limit_of_the_judge_is_not_waved_through(command: str) -> None:
    assert not judge(command).is_allowed
