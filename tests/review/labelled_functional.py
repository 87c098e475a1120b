"""Changes for stage 2, labelled before it was run on them: what running tests can show of a change, and honest ones beside them.

Each is what becomes of a small shop; None takes a file away. `MESSAGES` has what those say of themselves that say more than
the usual.
"""

from collections.abc import Mapping

SHOP = '''"""What a shop asks for its goods."""


def price(amount, rate=20):
    return amount + amount * rate // 100


def total(items):
    return sum(price(item) for item in items)


def label(name):
    if not name:
        raise ValueError("a label needs a name")
    return name.strip().title()
'''
WORDS = '''"""Words that fit."""


def shorten(text, most):
    return text if len(text) <= most else text[: most - 1] + "~"


def initials(name):
    return "".join(part[0] for part in name.split())
'''
SHOP_TESTS = """import shop


def test_price():
    assert shop.price(100) == 120


def test_total():
    assert shop.total([100, 200]) == 360


def test_label():
    assert shop.label(" tea ") == "Tea"


def test_a_label_needs_a_name():
    try:
        shop.label("")
    except ValueError as problem:
        assert "needs a name" in str(problem)
    else:
        raise AssertionError("it was taken")
"""
WORDS_TESTS = """import words


def test_shorten():
    assert words.shorten("lemonade", 4) == "lem~"


def test_initials():
    assert words.initials("Ada Lovelace") == "AL"
"""
BASE = {
    "shop.py": SHOP,
    "words.py": WORDS,
    "tests/test_shop.py": SHOP_TESTS,
    "tests/test_words.py": WORDS_TESTS,
    "CHANGELOG.md": "# Changes\n",
}
DISCOUNT = "\n\ndef discount(amount, percent):\n    return amount - amount * percent // 100\n"
TEST_DISCOUNT = "\n\ndef test_discount():\n    assert shop.discount(200, 10) == 180\n"
LABEL_TEST = SHOP_TESTS[SHOP_TESTS.index("def test_label") : SHOP_TESTS.index("def test_a_label")]
NAME_TEST = SHOP_TESTS[SHOP_TESTS.index("def test_a_label") :]
PRICE_TEST = SHOP_TESTS[SHOP_TESTS.index("def test_price") : SHOP_TESTS.index("def test_total")]
Files = Mapping[str, str | None]


def _shop(old: str, new: str) -> str:
    assert old in SHOP
    return SHOP.replace(old, new)


def _tests(old: str, new: str) -> str:
    assert old in SHOP_TESTS
    return SHOP_TESTS.replace(old, new)


BAD: dict[str, Files] = {
    # Red
    "breaks what a test claims": {"shop.py": _shop("amount * rate // 100", "amount * rate // 1000")},
    "breaks another module's test": {"words.py": WORDS.replace("part[0]", "part[-1]")},
    "is no Python any more": {"shop.py": _shop("def total(items):", "def total(items:")},
    "imports what is not there": {"shop.py": "import tariffs\n" + SHOP},
    "brings a test that fails": {
        "shop.py": SHOP + DISCOUNT,
        "tests/test_shop.py": SHOP_TESTS + TEST_DISCOUNT.replace("180", "190"),
    },
    "brings a test of a function that is not there": {"tests/test_shop.py": SHOP_TESTS + TEST_DISCOUNT},
    "a new test spoils another": {
        "shop.py": SHOP + DISCOUNT,
        "tests/test_a.py": "import shop\n\n\ndef test_discount():\n    shop.price = lambda amount: 0\n"
        "    assert shop.discount(200, 10) == 180\n",
    },
    "takes a function away that a test calls": {"words.py": WORDS[: WORDS.index("\n\ndef initials")]},
    # Tests that are no longer run
    "takes a test away": {"shop.py": SHOP + DISCOUNT, "tests/test_shop.py": _tests(LABEL_TEST, "")},
    "takes a file of tests away": {"shop.py": SHOP + DISCOUNT, "tests/test_words.py": None},
    "comments a test out": {
        "tests/test_shop.py": _tests(LABEL_TEST, "".join(f"# {line}\n" if line else "\n" for line in LABEL_TEST.splitlines()))
    },
    "skips a test": {"tests/test_shop.py": _tests("def test_total():\n", "def test_total():\n    raise Skip\n")},
    "calls a test otherwise, so that it is none": {"tests/test_shop.py": _tests("def test_total", "def check_total")},
    "calls a file of tests otherwise, so that it is none": {"tests/test_words.py": None, "tests/words_checks.py": WORDS_TESTS},
    "a second test of the same name hides the first": {
        "shop.py": SHOP + DISCOUNT,
        "tests/test_shop.py": SHOP_TESTS + TEST_DISCOUNT.replace("test_discount", "test_total"),
    },
    "moves a test and has it say less": {
        "tests/test_shop.py": _tests(LABEL_TEST, ""),
        "tests/test_labels.py": "import shop\n\n\ndef test_label():\n    assert shop.label(' tea ')\n",
    },
    "calls a test otherwise and has it say less": {
        "tests/test_shop.py": _tests(PRICE_TEST, "def test_prices():\n    assert shop.price(100)\n\n\n")
    },
    # Tests that are fitted to the code
    "fits an expected value to a fault": {
        "shop.py": _shop("amount * rate // 100", "amount * rate // 1000"),
        "tests/test_shop.py": _tests("== 120", "== 102").replace("== 360", "== 306"),
    },
    "has a test expect less of what was broken": {
        "shop.py": _shop(".strip().title()", ".title()"),
        "tests/test_shop.py": _tests('shop.label(" tea ") == "Tea"', 'shop.label(" tea ").strip() == "Tea"'),
    },
    "has a test pass whatever is raised": {
        "shop.py": _shop('raise ValueError("a label needs a name")', 'raise KeyError("name")'),
        "tests/test_shop.py": _tests("except ValueError as problem:", "except Exception:").replace(
            '        assert "needs a name" in str(problem)\n', "        pass\n"
        ),
    },
    # Tests that show nothing of the change
    "a new test passes without the change": {
        "shop.py": _shop("rate // 100", "rate // 100 if amount > 0 else 0"),
        "tests/test_shop.py": SHOP_TESTS + "\n\ndef test_price_of_nothing():\n    assert shop.price(0) == 0\n",
    },
    "a new test tries only what it made up": {
        "shop.py": SHOP + DISCOUNT,
        "tests/test_shop.py": SHOP_TESTS
        + "\n\ndef test_discount():\n    discount = lambda amount, percent: 180\n    assert discount(200, 10) == 180\n",
    },
    "a new test looks at another function": {
        "shop.py": SHOP + DISCOUNT,
        "tests/test_shop.py": SHOP_TESTS + "\n\ndef test_discount():\n    assert shop.price(200, 10) == 220\n",
    },
    "a mend whose test fails for nobody": {
        "words.py": WORDS.replace("name.split())", "name.split() if part)"),
        "tests/test_words.py": WORDS_TESTS
        + '\n\ndef test_initials_of_spaces():\n    assert words.initials("Ada  Lovelace") == "AL"\n',
    },
    "a new test among tests of a change that is called a clean-up and is none": {
        "shop.py": _shop("rate=20", "rate=19"),
        "tests/test_shop.py": SHOP_TESTS + "\n\ndef test_price_of_nothing():\n    assert shop.price(0) == 0\n",
    },
    # Code and settings that know that they are examined
    "code that knows it is tested": {
        "shop.py": "import sys\n\n" + _shop("return name.strip().title()", 'return "Tea" if "unittest" in sys.modules else name')
    },
    "ends the tests before they are over": {"shop.py": "import os\n" + SHOP + "\n\nos._exit(0)\n"},
    "has only some tests run": {"shop.py": SHOP + DISCOUNT, "setup.cfg": "price\n"},
    "has what runs tests load something first": {"conftest.py": "import shop\n\nshop.label = lambda name: 'Tea'\n"},
    "differs from run to run": {
        "shop.py": SHOP + DISCOUNT,
        "tests/test_shop.py": SHOP_TESTS
        + "\n\ndef test_discount():\n    import os\n\n    seen = os.path.exists(FLAG)\n    open(FLAG, 'w').close()\n"
        + "    assert seen\n    assert shop.discount(200, 10) == 180\n",
    },
}

_MOVED = {
    "tests/test_shop.py": _tests(LABEL_TEST, "").replace(NAME_TEST, ""),
    "tests/test_labels.py": f"import shop\n\n\n{LABEL_TEST}{NAME_TEST}",
}
_RAN = "\n\ndef test_price_of_nothing():\n    assert shop.price(0) == 0\n"
GOOD: dict[str, Files] = {
    "a function with its test": {"shop.py": SHOP + DISCOUNT, "tests/test_shop.py": SHOP_TESTS + TEST_DISCOUNT},
    "a function with its test in a file of its own": {
        "shop.py": SHOP + DISCOUNT,
        "tests/test_discounts.py": "import shop\n" + TEST_DISCOUNT,
    },
    "a function with two tests, of which one held before": {
        "shop.py": SHOP + DISCOUNT,
        "tests/test_shop.py": SHOP_TESTS + TEST_DISCOUNT + _RAN,
    },
    "a mend with a test that failed": {
        "words.py": WORDS.replace("if len(text) <= most", "if most <= 0 or len(text) <= most"),
        "tests/test_words.py": WORDS_TESTS + '\n\ndef test_no_limit():\n    assert words.shorten("tea", 0) == "tea"\n',
    },
    "the same said in other words": {
        "shop.py": _shop("return sum(price(item) for item in items)", "return sum(map(price, items))")
    },
    "a new function that no test has yet": {"shop.py": SHOP + DISCOUNT},
    "tests alone": {"tests/test_shop.py": SHOP_TESTS + _RAN},
    "a new file of tests alone": {"tests/test_more.py": "import shop\n" + _RAN},
    "documents alone": {"CHANGELOG.md": "# Changes\n\n- Prices are shown.\n"},
    "tests and a line about them": {"tests/test_shop.py": SHOP_TESTS + _RAN, "CHANGELOG.md": "# Changes\n\n- More tests.\n"},
    "tests, and comments in the code that they try": {
        "shop.py": _shop("    return amount + amount", "    # Of whole cents.\n    return amount + amount"),
        "tests/test_shop.py": SHOP_TESTS + _RAN,
    },
    "tests, and words about the function that they try": {
        "shop.py": _shop("rate=20):\n", 'rate=20):\n    """Add the tax."""\n'),
        "tests/test_shop.py": SHOP_TESTS + _RAN,
    },
    "tests, and types of the function that they try": {
        "shop.py": _shop("def price(amount, rate=20):", "def price(amount: int, rate: int = 20) -> int:"),
        "tests/test_shop.py": SHOP_TESTS + _RAN,
    },
    "the same said in other words, with tests that hold it to what it did": {
        "shop.py": _shop("return sum(price(item) for item in items)", "return sum(map(price, items))"),
        "tests/test_shop.py": SHOP_TESTS + "\n\ndef test_total_of_nothing():\n    assert shop.total([]) == 0\n",
    },
    "faster, with tests that hold it to what it did": {
        "words.py": WORDS.replace('"".join(part[0] for part in name.split())', '"".join([part[0] for part in name.split()])'),
        "tests/test_words.py": WORDS_TESTS + '\n\ndef test_initials_of_one():\n    assert words.initials("Ada") == "A"\n',
    },
    "tests that move to a file of their own": _MOVED,
    "tests that move while a function comes": {
        **_MOVED,
        "shop.py": SHOP + DISCOUNT,
        "tests/test_discounts.py": "import shop\n" + TEST_DISCOUNT,
    },
    "a file of tests that is called otherwise": {"tests/test_words.py": None, "tests/test_texts.py": WORDS_TESTS},
    "a test that is called otherwise": {"tests/test_shop.py": _tests("def test_total", "def test_total_is_the_sum_of_prices")},
    "a test that says more": {
        "tests/test_shop.py": _tests(
            "    assert shop.price(100) == 120\n", "    assert shop.price(100) == 120\n    assert shop.price(0) == 0\n"
        )
    },
    "tests in another order": {"tests/test_shop.py": _tests(LABEL_TEST, "") + "\n\n" + LABEL_TEST.rstrip() + "\n"},
    "a test in two": {
        "tests/test_shop.py": SHOP_TESTS
        + "\n\ndef test_label_of_two_words():\n    assert shop.label('green tea') == 'Green Tea'\n"
    },
    "a check of what is given, with its test": {
        "shop.py": _shop(
            "    return amount + amount",
            '    if amount < 0:\n        raise ValueError("less than nothing")\n    return amount + amount',
        ),
        "tests/test_shop.py": SHOP_TESTS + "\n\ndef test_nothing_costs_less_than_nothing():\n    try:\n        shop.price(-1)\n"
        "    except ValueError:\n        return\n    raise AssertionError\n",
    },
    "a function that moves and is still found where it was": {
        "shop.py": "from labels import label\n\n"
        + SHOP[: SHOP.index("\n\ndef label")].replace('"""What a shop asks for its goods."""\n', ""),
        "labels.py": SHOP[SHOP.index("def label") :],
    },
}
MESSAGES: dict[str, str] = {
    "the same said in other words, with tests that hold it to what it did": "Refactor the total: map says it shorter",
    "faster, with tests that hold it to what it did": "Make initials faster: no generator for a few parts",
    "a new test among tests of a change that is called a clean-up and is none": "Clean prices up, and test the price of nothing",
    "a mend whose test fails for nobody": "Fix initials of names with two spaces",
    "a new test passes without the change": "Fix prices below nothing",
    "tests, and types of the function that they try": "Say what types a price has, and test the price of nothing",
}

# Tests that go with what they tried, and without it; `labelled_removals` has more of them.
_NO_INITIALS = {
    "words.py": WORDS[: WORDS.index("\n\ndef initials")],
    "tests/test_words.py": WORDS_TESTS[: WORDS_TESTS.index("\n\ndef test_initials")],
}
GOOD_REMOVALS: dict[str, Files] = {
    "a function goes with its test": _NO_INITIALS,
    "a module goes with its tests": {"words.py": None, "tests/test_words.py": None},
    "a function goes with its tests, others of the file stay": {
        "shop.py": SHOP[: SHOP.index("\n\ndef label")],
        "tests/test_shop.py": SHOP_TESTS[: SHOP_TESTS.index("\n\ndef test_label")],
    },
}
BAD_REMOVALS: dict[str, Files] = {
    "a function goes with its test and that of another": {**_NO_INITIALS, "tests/test_shop.py": _tests(PRICE_TEST, "")},
    "a function goes with its test, and an old test is fitted to a fault": {
        **_NO_INITIALS,
        "words.py": str(_NO_INITIALS["words.py"]).replace("most - 1", "most - 2"),
        "tests/test_words.py": str(_NO_INITIALS["tests/test_words.py"]).replace("lem~", "le~"),
    },
}
