import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decklog.core.errors import Invalid
from decklog.provenance.formats.git_ai import (
    Attestation,
    AuthorshipNote,
    KeyKind,
    NotedSession,
    checkpoint_key,
    format_note,
    human_key,
    join_spans,
    kind_of_key,
    parse_note,
    parse_ranges,
    quote_path,
    session_key,
)
from tests.provenance.formats import second_reader
from tests.searches import examples

BASE = "7734793b756b3921c88db5375a8c156e9532447b"
# Written by hand: all kinds of keys, a quoted path, unknown fields, and a line with two keys.
EVERY_KIND = (
    """src/main.rs
  s_0123456789abcd::t_00112233445566 1-4,9,12-20
  h_aaaaaaaaaaaaaa 5-8
"src/my file.rs"
  abcd1234abcd1234 1-10
  abcd123 11
src/both.rs
  s_0123456789abcd::t_00112233445566 1-3
  abcd1234abcd1234 3-4
  x_new 9
---
{"""
    f'"schema_version": "authorship/3.0.0", "git_ai_version": "1.9.0", "base_commit_sha": "{BASE}",'
    """
 "prompts": {
   "abcd1234abcd1234": {"agent_id": {"tool": "cursor", "id": "c1", "model": "m1"}, "human_author": "Ada <ada@example.org>",
     "messages": [{"type": "user", "text": "Add a test"}],
     "total_additions": 25, "total_deletions": 5, "accepted_lines": 20, "overriden_lines": 1},
   "abcd123": {"agent_id": {"tool": "claude", "id": "c2", "model": "m2"},
     "total_additions": 1, "total_deletions": 0, "accepted_lines": 1, "overriden_lines": 0}},
 "sessions": {"s_0123456789abcd": {"agent_id": {"tool": "codex", "id": "c3", "model": "m3"},
   "custom_attributes": {"team": "core"}}},
 "humans": {"h_aaaaaaaaaaaaaa": {"author": "Ada <ada@example.org>"}}}
"""
)


def test_note_with_keys_of_all_kinds_is_read() -> None:
    note = parse_note(EVERY_KIND)
    assert note.base_commit == BASE
    assert note.files["src/main.rs"] == (
        Attestation("s_0123456789abcd::t_00112233445566", ((1, 4), (9, 9), (12, 20))),
        Attestation("h_aaaaaaaaaaaaaa", ((5, 8),)),
    )
    session = note.session_of("s_0123456789abcd::t_00112233445566")
    assert session is not None
    assert (session.tool, session.conversation, session.model) == ("codex", "c3", "m3")
    assert session.custom_attributes == {"team": "core"}
    legacy = note.session_of("abcd1234abcd1234")
    assert legacy is not None
    assert (legacy.tool, legacy.human_author, legacy.extra["overriden_lines"]) == ("cursor", "Ada <ada@example.org>", 1)
    short = note.session_of("abcd123")
    assert short is not None
    assert short.tool == "claude"
    assert note.author_of("h_aaaaaaaaaaaaaa") == "Ada <ada@example.org>"
    assert note.session_of("h_aaaaaaaaaaaaaa") is None


def test_quoted_path_is_read() -> None:
    assert [one.key for one in parse_note(EVERY_KIND).files["src/my file.rs"]] == ["abcd1234abcd1234", "abcd123"]


def test_line_with_two_keys_names_both() -> None:
    found = list(parse_note(EVERY_KIND).spans_of("src/both.rs"))
    session = "s_0123456789abcd::t_00112233445566"
    assert found == [
        ((1, 2), (session,)),
        ((3, 3), (session, "abcd1234abcd1234")),
        ((4, 4), ("abcd1234abcd1234",)),
        ((9, 9), ("x_new",)),
    ]


def test_unknown_key_names_nobody() -> None:
    note = parse_note(EVERY_KIND)
    assert kind_of_key("x_new") is KeyKind.UNKNOWN
    assert note.session_of("x_new") is None
    assert note.author_of("x_new") is None


def test_unknown_fields_survive_reading_and_writing() -> None:
    note = parse_note(EVERY_KIND)
    assert note.extra == {"git_ai_version": "1.9.0"}
    assert parse_note(format_note(note)) == AuthorshipNote(
        **{
            **vars(note),
            "files": {path: tuple(sorted(found, key=lambda one: one.key)) for path, found in note.files.items()},
        }
    )


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("s_0123456789abcd::t_00112233445566", KeyKind.SESSION),
        ("h_0123456789abcd", KeyKind.HUMAN),
        ("0123456789abcdef", KeyKind.LEGACY),
        ("0123456", KeyKind.LEGACY),
        ("01234567", KeyKind.UNKNOWN),
        ("s_0123456789ABCD::t_00112233445566", KeyKind.UNKNOWN),
        ("h_0123", KeyKind.UNKNOWN),
    ],
)
def test_kind_of_a_key(key: str, kind: KeyKind) -> None:
    assert kind_of_key(key) is kind


def test_keys_are_digests_of_what_they_name() -> None:
    session = session_key("claude", "11906c19-379b-4081-8da7-a0f4923759b6")
    assert session == "s_" + hashlib.sha256(b"claude:11906c19-379b-4081-8da7-a0f4923759b6").hexdigest()[:14]
    assert checkpoint_key(session, "edit-1") == checkpoint_key(session, "edit-1") != checkpoint_key(session, "edit-2")
    assert human_key("Ada <ada@example.org>") == "h_" + hashlib.sha256(b"Ada <ada@example.org>").hexdigest()[:14]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "src/main.rs\n  abcd1234abcd1234 1-2\n",
        "---\nnothing",
        "---\n[]",
        '---\n{"schema_version": "authorship/4.0.0"}',
        '  abcd1234abcd1234 1\n---\n{"schema_version": "authorship/3.0.0"}',
        'a\n  abcd1234abcd1234\n---\n{"schema_version": "authorship/3.0.0"}',
        'a\n  abcd1234abcd1234 1, 2\n---\n{"schema_version": "authorship/3.0.0"}',
        '---\n{"schema_version": "authorship/3.0.0", "sessions": {"s_0123456789abcd": {}}}',
        '---\n{"schema_version": "authorship/3.0.0", "humans": []}',
    ],
)
def test_text_that_is_no_note_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        parse_note(text)


@pytest.mark.parametrize("text", ["", "0", "-1", "2-1", "1,1", "3,1", "1-2,2-3", "1 -2", "a", "1-", "1,,2", "١"])
def test_wrong_ranges_are_refused(text: str) -> None:
    with pytest.raises(Invalid):
        parse_ranges(text)


def test_path_with_a_line_break_is_refused() -> None:
    with pytest.raises(Invalid):
        quote_path("a\nb")


def test_file_without_lines_is_left_out() -> None:
    note = AuthorshipNote(base_commit=BASE, files={"a": (), "b": (Attestation("x", ()),)})
    assert format_note(note).startswith("---\n")


paths = st.text(st.characters(exclude_characters="\n\0", exclude_categories=["Cs"]), min_size=1)
digits = st.text("0123456789abcdef", min_size=14, max_size=14)
spans = st.lists(st.tuples(st.integers(1, 40), st.integers(0, 9)), min_size=1).map(
    lambda found: join_spans((start, start + size) for start, size in found)
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
agents = st.builds(
    NotedSession,
    tool=st.sampled_from(["claude", "codex", "pi"]),
    conversation=texts,
    model=texts,
    human_author=st.none() | texts,
    custom_attributes=st.none() | st.dictionaries(texts, texts, max_size=2),
)


@st.composite
def notes(draw: st.DrawFn) -> AuthorshipNote:
    sessions = draw(st.dictionaries(digits.map("s_{}".format), agents, max_size=3))
    humans = draw(st.dictionaries(digits.map("h_{}".format), texts, max_size=2))
    counts = dict.fromkeys(("total_additions", "total_deletions", "accepted_lines", "overriden_lines"), 7)
    legacy = st.builds(lambda one: NotedSession(**{**vars(one), "extra": counts}), agents)
    prompts = draw(st.dictionaries(st.sampled_from(["abcdef0", "abcdef0123456789"]), legacy))
    keys = [*(f"{key}::t_{draw(digits)}" for key in sessions), *humans, *prompts]
    files = {}
    for path in draw(st.lists(paths, unique=True, max_size=4)) if keys else []:
        chosen = sorted(draw(st.lists(st.sampled_from(keys), min_size=1, unique=True)))
        files[path] = tuple(Attestation(key, draw(spans)) for key in chosen)
    return AuthorshipNote(base_commit=BASE, files=files, sessions=sessions, prompts=prompts, humans=humans)


@pytest.mark.slow
@settings(max_examples=examples(200))
@given(notes())
def test_what_is_written_is_read_again(note: AuthorshipNote) -> None:
    assert parse_note(format_note(note)) == note


@pytest.mark.slow
@settings(max_examples=examples(200))
@given(notes())
def test_second_reader_agrees_with_what_is_written(note: AuthorshipNote) -> None:
    files, metadata = second_reader.read(format_note(note))
    assert set(files) == set(note.files)
    for path, attestations in note.files.items():
        expected: dict[int, str] = {}
        for one in attestations:
            expected |= {line: one.key for start, end in one.spans for line in range(start, end + 1)}
        assert files[path] == expected
    assert {key: one["author"] for key, one in metadata["humans"].items()} == note.humans
