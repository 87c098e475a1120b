"""Changes that take tests away, labelled before the rule for them was written: with the code that they tried, or without it.

Each is what becomes of a small package; None takes a file away.
"""

from tests.review.labelled_functional import Files

INIT = '''"""A shop."""

from shop.prices import price, total
from shop.tax import tax
'''
PRICES = '''"""What goods cost."""

RATE = 20


def price(amount, rate=RATE):
    return amount + amount * rate // 100


def total(items):
    return sum(price(item) for item in items)
'''
TAX = '''"""What the state gets."""


def tax(amount, rate):
    """Give the tax of an amount."""
    if rate < 0:
        raise ValueError("a rate is not below nothing")
    whole = amount * rate
    return whole // 100


def levy(amounts):
    found = {}
    for name, amount in amounts.items():
        found[name] = max(1, amount // 50)
    return found
'''
BASKET = '''"""What somebody is about to buy."""

from shop.prices import total


class Basket:
    def __init__(self):
        self.items = []

    def add(self, amount):
        self.items.append(amount)
        return self

    def sum(self):
        return total(self.items)

    def rebate(self, percent):
        kept = 100 - percent
        return self.sum() * kept // 100


class Voucher:
    def __init__(self, worth):
        self.worth = worth

    def redeem(self, amount):
        return max(0, amount - self.worth)
'''
WORDS = '''"""Words on labels."""


def label(name):
    if not name:
        raise ValueError("a label needs a name")
    return name.strip().title()


def shorten(text, most):
    return text if len(text) <= most else text[: most - 1] + "~"
'''
TEST_PRICES = """import shop
from shop import prices


def test_price():
    assert shop.price(100) == 120


def test_total():
    assert prices.total([100, 200]) == 360
"""
TEST_TAX = """import pytest

from shop import price
from shop.tax import levy, tax

CASES = [(200, 10, 20), (50, 10, 5)]


def rounded(amount):
    return tax(amount, 3)


def test_tax():
    for amount, rate, expected in CASES:
        assert tax(amount, rate) == expected


def test_tax_is_rounded_down():
    found = rounded(50)
    assert found == 1


def test_a_rate_is_not_below_nothing():
    with pytest.raises(ValueError, match="below"):
        tax(1, -1)


def test_levy():
    assert levy({"a": 100}) == {"a": 2}


def test_price_has_the_tax():
    assert price(100) == 100 + tax(100, 20)


def test_price_and_tax():
    assert price(200) == 240
    assert tax(200, 20) == 40
"""
TEST_BASKET = """import pytest

from shop.basket import Basket, Voucher


@pytest.fixture
def basket():
    return Basket().add(100).add(200)


@pytest.fixture
def voucher():
    return Voucher(50)


def test_sum(basket):
    assert basket.sum() == 360


def test_rebate(basket):
    assert basket.rebate(10) == 324


def test_a_voucher_is_redeemed(voucher):
    assert voucher.redeem(80) == 30


class TestVoucher:
    def setup_method(self):
        self.voucher = Voucher(100)

    def test_nothing_is_below_nothing(self):
        assert self.voucher.redeem(80) == 0

    def test_the_rest(self):
        rest = self.voucher.redeem(130)
        assert rest == 30
"""
TEST_WORDS = """import unittest

from shop import words


class Labels(unittest.TestCase):
    def test_label(self):
        self.assertEqual(words.label(" tea "), "Tea")

    def test_a_label_needs_a_name(self):
        try:
            words.label("")
        except ValueError as problem:
            self.assertIn("needs a name", str(problem))
        else:
            self.fail("it was taken")


class Short(unittest.TestCase):
    def test_shorten(self):
        self.assertEqual(words.shorten("lemonade", 4), "lem~")
"""
BASE = {
    "shop/__init__.py": INIT,
    "shop/prices.py": PRICES,
    "shop/tax.py": TAX,
    "shop/basket.py": BASKET,
    "shop/words.py": WORDS,
    "tests/test_prices.py": TEST_PRICES,
    "tests/test_tax.py": TEST_TAX,
    "tests/test_basket.py": TEST_BASKET,
    "tests/test_words.py": TEST_WORDS,
}


def _cut(text: str, first: str, until: str = "") -> str:
    """Take a part out, from its beginning up to another's."""
    start = text.index(first)
    return text[:start].rstrip("\n") + "\n" + ("\n\n" + text[text.index(until) :] if until else "")


_NO_LEVY = {
    "shop/tax.py": _cut(TAX, "def levy"),
    "tests/test_tax.py": _cut(TEST_TAX, "def test_levy", "def test_price_has").replace("levy, tax", "tax"),
}
_NO_INIT_TAX = INIT.replace("from shop.tax import tax\n", "")
_LEVY_ALONE = (
    "import pytest\n\nfrom shop.tax import levy\n\n\n" + TEST_TAX[TEST_TAX.index("def test_levy") :].partition("\n\n\n")[0]
)
_ONLY_LEVY = TAX[: TAX.index("def tax")] + TAX[TAX.index("def levy") :]
# What a test said of code that stays, said by another.
_PRICE_AGAIN = "\n\n\ndef test_price_is_a_fifth_more():\n    from shop import price\n\n    assert price(200) == 240\n"
_NO_REBATE = _cut(BASKET, "    def rebate", "class Voucher")
_NO_REBATE_TEST = _cut(TEST_BASKET, "def test_rebate", "def test_a_voucher")
_NO_VOUCHER = _cut(BASKET, "class Voucher")
_NO_VOUCHER_TEST = _cut(
    _cut(TEST_BASKET, "def test_a_voucher").replace("Basket, Voucher", "Basket"), "@pytest.fixture\ndef voucher", "def test_sum"
)
_NO_LABEL = WORDS[: WORDS.index("def label")] + WORDS[WORDS.index("def shorten") :]
_NO_LABEL_TEST = TEST_WORDS[: TEST_WORDS.index("class Labels")] + TEST_WORDS[TEST_WORDS.index("class Short") :]

GOOD: dict[str, Files] = {
    "a function goes with its test": _NO_LEVY,
    "a module goes with its tests, and what the package took of it": {
        "shop/__init__.py": _NO_INIT_TAX,
        "shop/tax.py": None,
        "tests/test_tax.py": None,
        "tests/test_prices.py": TEST_PRICES + _PRICE_AGAIN,
    },
    "a function goes with the class of its tests": {"shop/words.py": _NO_LABEL, "tests/test_words.py": _NO_LABEL_TEST},
    "a module goes with its tests in classes": {"shop/words.py": None, "tests/test_words.py": None},
    "a method goes with its test": {"shop/basket.py": _NO_REBATE, "tests/test_basket.py": _NO_REBATE_TEST},
    "a class goes with its tests, its fixture and what set it up": {
        "shop/basket.py": _NO_VOUCHER,
        "tests/test_basket.py": _NO_VOUCHER_TEST,
    },
    "a function goes with its tests, of which one has a helper and one looks at an error": {
        "shop/__init__.py": _NO_INIT_TAX,
        "shop/tax.py": _ONLY_LEVY,
        "tests/test_tax.py": _LEVY_ALONE + _PRICE_AGAIN,
    },
    "two functions go with their tests": {**_NO_LEVY, "shop/words.py": _NO_LABEL, "tests/test_words.py": _NO_LABEL_TEST},
    "a function goes with its test, and another comes with its own": {
        "shop/tax.py": _cut(TAX, "def levy")
        + "\n\ndef exempt(name):\n    return name.lower() in ('bread', 'milk') or name.startswith('_')\n",
        "tests/test_tax.py": _NO_LEVY["tests/test_tax.py"].replace("import tax", "import exempt, tax")  # type: ignore[union-attr]
        + "\n\ndef test_bread_is_exempt():\n    assert exempt('Bread')\n",
    },
    "a function goes, and tests of others move": {
        "shop/words.py": _NO_LABEL,
        "tests/test_words.py": None,
        "tests/test_shortening.py": _NO_LABEL_TEST,
    },
    "a function goes with its test, and what called it does less": {
        "shop/basket.py": BASKET.replace("return total(self.items)", "return sum(self.items)").replace(
            "from shop.prices import total\n\n\n", ""
        ),
        "shop/__init__.py": INIT.replace("price, total", "price"),
        "shop/prices.py": _cut(PRICES, "def total"),
        "tests/test_prices.py": _cut(TEST_PRICES, "def test_total").replace("from shop import prices\n", ""),
        "tests/test_basket.py": TEST_BASKET.replace("== 360", "== 300").replace("== 324", "== 270"),
    },
}
BAD: dict[str, Files] = {
    "a test of code that stays goes": {"tests/test_tax.py": _NO_LEVY["tests/test_tax.py"]},
    "a file of tests of code that stays goes": {"tests/test_words.py": None},
    "a function goes, and with its test another's": {
        **_NO_LEVY,
        "tests/test_prices.py": _cut(TEST_PRICES, "def test_total").replace("from shop import prices\n", ""),
    },
    "a function goes, and a test that looked at another one too": {
        "shop/__init__.py": _NO_INIT_TAX,
        "shop/tax.py": _ONLY_LEVY,
        "tests/test_tax.py": _LEVY_ALONE,
        "tests/test_prices.py": TEST_PRICES,
        "shop/prices.py": PRICES,
    },
    "a function goes, and with it the only test that names another": {
        "shop/__init__.py": _NO_INIT_TAX,
        "shop/tax.py": None,
        "tests/test_tax.py": None,
        "tests/test_prices.py": _cut(TEST_PRICES, "def test_price", "def test_total").replace("import shop\n", ""),
    },
    "a function is called otherwise, and its test goes": {
        "shop/tax.py": TAX.replace("def levy", "def duties"),
        "tests/test_tax.py": _NO_LEVY["tests/test_tax.py"],
    },
    "a function is called otherwise, its names too, and its test goes": {
        "shop/tax.py": TAX.replace("def levy", "def duties").replace("found", "result").replace("amounts", "sums"),
        "tests/test_tax.py": _NO_LEVY["tests/test_tax.py"],
    },
    "a function moves to another module, and its test goes": {
        **_NO_LEVY,
        "shop/levies.py": '"""Levies."""\n\n\n' + TAX[TAX.index("def levy") :],
    },
    "a function is no longer found in the package, and its tests go": {
        "shop/__init__.py": INIT.replace("price, total", "price"),
        "tests/test_prices.py": _cut(TEST_PRICES, "def test_total"),
    },
    "a method is called otherwise, and its test goes": {
        "shop/basket.py": BASKET.replace("def rebate", "def discount"),
        "tests/test_basket.py": _NO_REBATE_TEST,
    },
    "a method goes, and the test of another": {
        "shop/basket.py": _NO_REBATE,
        "tests/test_basket.py": _cut(TEST_BASKET, "def test_sum", "def test_a_voucher"),
    },
    "a class goes, and with its tests one of a class that stays": {
        "shop/basket.py": _NO_VOUCHER,
        "tests/test_basket.py": _cut(_NO_VOUCHER_TEST, "def test_sum", "def test_rebate"),
    },
    "a class is called otherwise, and its tests go": {
        "shop/basket.py": BASKET.replace("class Voucher", "class Coupon"),
        "tests/test_basket.py": _NO_VOUCHER_TEST,
    },
    "a function goes from one module and stays in another of its name": {
        **_NO_LEVY,
        "shop/prices.py": PRICES + "\n\n" + TAX[TAX.index("def levy") :],
    },
    "nothing goes but words about a function, and its test": {
        "shop/tax.py": TAX.replace('    """Give the tax of an amount."""\n', ""),
        "tests/test_tax.py": _cut(TEST_TAX, "def test_tax()", "def test_tax_is"),
    },
    "a function becomes one line of another file, and its tests go": {
        "shop/words.py": _NO_LABEL + '\n\ndef label(name):\n    return name.strip().title() or "?"\n',
        "tests/test_words.py": _NO_LABEL_TEST,
    },
    "a file that is no Python any more, and its tests": {
        "shop/words.py": WORDS.replace("def label(name):", "def label(name:"),
        "tests/test_words.py": None,
    },
    "a test is turned off beside a function that goes": {
        **_NO_LEVY,
        "tests/test_prices.py": TEST_PRICES.replace("def test_total", "def check_total"),
    },
}
