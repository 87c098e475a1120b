"""Types of what verbs return where that is not a record: dictionaries of JSON values, with their keys.

Only type checkers need these modules, so stores import them under TYPE_CHECKING.
"""
