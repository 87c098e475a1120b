from tests.guard.sqlite_only import target

__all__ = ["target"]
