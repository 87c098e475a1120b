from tests.tools.sqlite_only import target

__all__ = ["target"]
