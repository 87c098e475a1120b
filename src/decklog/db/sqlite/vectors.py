"""The extension of SQLite that compares vectors."""

import apsw


def is_loaded(connection: apsw.Connection) -> bool:
    """Make sqlite-vec known to a connection; False where the package or the extension can't be loaded."""
    known = connection.execute("select 1 from pragma_function_list where name = 'vec_distance_cosine'").fetchone()
    if known is not None:
        return True
    try:
        from sqlite_vec import loadable_path

        connection.enable_load_extension(True)
        connection.load_extension(loadable_path())
    except (ImportError, apsw.ExtensionLoadingError, AttributeError):
        return False  # AttributeError: an apsw that was built without extensions
    finally:
        if hasattr(connection, "enable_load_extension"):
            connection.enable_load_extension(False)
    return True
