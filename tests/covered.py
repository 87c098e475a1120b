"""Measures what the processes of the tests run of Decklog: a plugin of pytest for `make coverage`.

Not by what coverage can put into every process that Python starts: the tests start thousands of short ones, each of which would
load it first.
"""

import os

import coverage

_MEASURED = coverage.Coverage(data_suffix=True)
if "PYTEST_XDIST_WORKER" in os.environ:
    _MEASURED.start()


def pytest_unconfigure() -> None:
    """Keep what was measured, after the last test and all that it had made for it have ended."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        _MEASURED.stop()
        _MEASURED.save()
