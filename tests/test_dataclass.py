"""Our dataclasses are Python's own to everyone who looks, though their methods are written later."""

import copy
import dataclasses
import inspect
import pickle
import re
from dataclasses import FrozenInstanceError, field
from pathlib import Path
from typing import Any

import pytest

import decklog
from decklog.dataclass import dataclass
from tests.every import every

_OWN = re.compile(r"^from dataclasses import .*\bdataclass\b", re.MULTILINE)
_METHODS = ("__init__", "__repr__", "__eq__", "__hash__")


@dataclass(frozen=True)
class Place:
    """Somewhere."""

    name: str
    tags: list[str] = field(default_factory=list, compare=False)
    depth: int = 3


@dataclass(frozen=True, kw_only=True)
class Named(Place):
    """Somewhere with an owner."""

    owner: str


@dataclass
class Count:
    of: str
    number: int = 0

    def __post_init__(self) -> None:
        self.number += 1


def _twins() -> tuple[Any, Any]:
    """Give a class of ours of which nothing was used yet, and Python's own of the same body."""

    def body() -> type:
        class Body:
            """A body."""

            left: int
            right: "str | None" = None
            hidden: int = field(default=5, repr=False)
            made: dict[str, int] = field(default_factory=dict)

        return Body

    return dataclass(frozen=True)(body()), dataclasses.dataclass(frozen=True)(body())


def test_no_method_is_written_before_it_is_used() -> None:
    ours, _ = _twins()
    assert not any(inspect.isfunction(ours.__dict__[name]) for name in _METHODS)
    made = ours(1)
    assert inspect.isfunction(ours.__dict__["__init__"])
    assert not any(inspect.isfunction(ours.__dict__[name]) for name in _METHODS[1:])
    assert made == ours(1)
    assert inspect.isfunction(ours.__dict__["__eq__"])


_CLAIMS: list[Any] = [
    lambda kind: str(inspect.signature(kind)),
    lambda kind: [(item.name, item.default, item.repr, item.kw_only) for item in dataclasses.fields(kind)],
    lambda kind: kind.__match_args__,
    lambda kind: repr(kind(1, "x", made={"a": 1})),
    lambda kind: (kind(1) == kind(1), kind(1) == kind(2), kind(1) == 1, kind(1) != kind(1, "x")),
    lambda kind: dataclasses.asdict(dataclasses.replace(kind(1), right="y")),
    lambda kind: vars(copy.deepcopy(kind(1, hidden=7))),
    lambda kind: kind.__init__.__qualname__,
    lambda kind: dataclasses.is_dataclass(kind),
    lambda kind: kind.__doc__,
    lambda kind: _refused(lambda: kind()),
    lambda kind: _refused(lambda: kind(1, 2, 3, {}, 5)),
    lambda kind: _refused(lambda: kind(1, wrong=2)),
    lambda kind: _refused(lambda: setattr(kind(1), "left", 2)),
    lambda kind: _refused(lambda: setattr(kind(1), "other", 2)),
    lambda kind: _refused(lambda: delattr(kind(1), "left")),
    lambda kind: _refused(lambda: hash(kind(1))),
]


def _refused(act: Any) -> tuple[str, str]:
    with pytest.raises((TypeError, AttributeError)) as caught:
        act()
    return caught.type.__name__, str(caught.value)


@every("claim", _CLAIMS, ids=[str(number) for number in range(len(_CLAIMS))])
def test_a_class_of_ours_answers_as_pythons_own_whatever_is_asked_first(claim: Any) -> None:
    ours, own = _twins()
    assert claim(ours) == claim(own)


def test_what_is_compared_is_hashed_and_nothing_else() -> None:
    assert Place("a", ["x"]) == Place("a", ["y"])
    assert hash(Place("a", ["x"])) == hash(Place("a"))
    assert len({Place("a"), Place("a"), Place("b")}) == 2


def test_a_class_that_may_change_has_no_hash_and_is_finished_by_its_own_words() -> None:
    count = Count("sheep")
    count.number += 1
    assert (count, repr(count)) == (Count("sheep", 1), "Count(of='sheep', number=2)")
    with pytest.raises(TypeError):
        hash(count)


def test_a_class_that_adds_fields_to_another_has_them_all() -> None:
    named = Named("a", owner="ana")
    assert (named.name, named.depth, named.owner) == ("a", 3, "ana")
    assert named != Place("a")
    assert pickle.loads(pickle.dumps(named)) == named
    with pytest.raises(FrozenInstanceError):
        named.owner = "eve"  # type: ignore[misc]


def test_what_a_body_says_of_itself_stays() -> None:
    @dataclass(frozen=True)
    class Word:
        text: str

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Word) and other.text.lower() == self.text.lower()

        def __hash__(self) -> int:
            return hash(self.text.lower())

        def __repr__(self) -> str:
            return self.text

    assert {Word("A"), Word("a")} == {Word("A")}
    assert repr(Word("A")) == "A"


def test_what_has_slots_is_made_at_once() -> None:
    @dataclass(frozen=True, slots=True)
    class Point:
        x: int

    assert (Point(1), hash(Point(1)), hasattr(Point(1), "__dict__")) == (Point(1), hash((1,)), False)


def test_no_module_declares_by_pythons_own() -> None:
    """It would cost every call that imports it a millisecond or two."""
    modules = Path(decklog.__file__).parent.rglob("*.py")
    own = [path.stem for path in modules if _OWN.search(path.read_text())]
    assert own == ["dataclass"]


def test_the_first_ones_are_filled_without_the_method_and_are_like_all_others() -> None:
    calls: list[object] = []

    @dataclass(frozen=True, kw_only=True)
    class Filled:
        one: int
        two: str = "2"
        three: list[int] = field(default_factory=list)

        def __post_init__(self) -> None:
            calls.append(self)

    first = Filled(three=[3], one=1)
    assert "__code__" not in dir(vars(Filled)["__init__"]), "its method is not written yet"
    assert list(vars(first).items()) == [("one", 1), ("two", "2"), ("three", [3])]
    assert Filled(one=1).three is not Filled(one=1).three
    for wrong in ({}, {"one": 1, "four": 4}):
        with pytest.raises(TypeError, match=r"__init__\(\)"):
            Filled(**wrong)
    assert "__code__" in dir(vars(Filled)["__init__"])
    assert Filled(one=1, three=[3]) == first
    assert len(calls) == 4


def test_a_field_that_nobody_gives_is_left_to_the_method() -> None:
    @dataclass(frozen=True)
    class Own:
        numbers: list[int] = field(init=False, default_factory=list)

    assert vars(Own()) == {"numbers": []}


@dataclass(frozen=True)
class _Many:
    """One of which there are more than are filled without a method."""

    first: int
    second: list[int] = field(default_factory=list)
    third: str = "3"
    fourth: int = field(default=4, kw_only=True)


def test_the_method_that_makes_many_does_what_the_one_for_few_does() -> None:
    few = [_Many(first=number) for number in range(50)]
    many = [_Many(first=number) for number in range(150)]
    assert many[:50] == few
    assert many[149] == _Many(149, [], "3", fourth=4)
    assert list(vars(many[149])) == list(vars(few[0])) == ["first", "second", "third", "fourth"]
    assert many[148].second is not many[149].second
    with pytest.raises(FrozenInstanceError):
        many[149].first = 1  # type: ignore[misc]
    with pytest.raises(TypeError, match=r"_Many\.__init__\(\) missing 1 required positional argument: 'first'"):
        _Many()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'fifth'"):
        _Many(1, fifth=5)  # type: ignore[call-arg]
