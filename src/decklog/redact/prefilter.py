"""A cheap look at a text: could it hold a secret at all?"""


def may_hold_secret(text: str) -> bool:
    """Tell whether a text, or the value it is the JSON of, could hold a secret; False is certain."""
    return bool(text)
