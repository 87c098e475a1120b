"""Types of verb results that are not records: dictionaries of JSON values.

Only type checkers need these modules, so stores import them under TYPE_CHECKING.
"""
