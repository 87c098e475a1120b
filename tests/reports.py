"""What a process of the tests tells the one that gives it tests: of a test that passed, its call alone.

Each message is written, sent and read in Python, and there are six of them for a test: that it begins, what came of its set-up,
its call and its tear-down, that it ended, and that the next one may come. Nobody looks at the first, nor at a set-up or a
tear-down that went well and said nothing.
"""

from typing import Any

import pytest

_NAME = "WorkerInteractor"


def tell_less(config: pytest.Config) -> None:
    """Leave out what nobody looks at."""
    [telling] = [plugin for plugin in config.pluginmanager.get_plugins() if type(plugin).__name__ == _NAME]
    tell: Any = telling.pytest_runtest_logreport

    def pytest_runtest_logreport(report: pytest.TestReport) -> None:
        if report.when == "call" or not report.passed or report.sections:
            tell(report=report)

    config.pluginmanager.unregister(telling)
    telling.pytest_runtest_logreport = pytest_runtest_logreport
    telling.pytest_runtest_logstart = None
    config.pluginmanager.register(telling)
