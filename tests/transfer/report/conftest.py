from tests.cli.conftest import decklog, log_folder, started_log_file

__all__ = ["decklog", "log_folder", "started_log_file"]
