"""A pytest plugin for `make coverage`, which measures the coverage of pytest's worker processes.

It does not use coverage's hook for all Python processes: the tests start thousands of short ones, and each would load coverage.
"""

import os

import coverage

_MEASURED = coverage.Coverage(data_suffix=True)
if "PYTEST_XDIST_WORKER" in os.environ:
    _MEASURED.start()


def pytest_unconfigure() -> None:
    """Save the measurement after the last test and the teardown of its fixtures."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        _MEASURED.stop()
        _MEASURED.save()
