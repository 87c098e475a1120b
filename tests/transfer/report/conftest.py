from tests.cli.conftest import decklog, log_folder

__all__ = ["decklog", "log_folder"]
