"""HTTP statuses of errors, and the parts of an error that a page may show."""

from decklog.core import errors

# The first matching class wins.
STATUSES: tuple[tuple[type[BaseException], int], ...] = (
    (errors.TooLarge, 413),
    (errors.NotFound, 404),
    (errors.Conflict, 409),
    (errors.Denied, 403),
    (errors.Invalid, 400),
    (errors.Unavailable, 503),
    (BaseException, 500),
)
TITLES = {
    400: "That can't be used as it is",
    403: "That is not permitted",
    404: "There is no such thing here",
    409: "That is no longer so",
    413: "That is too large",
    429: "Wait a moment",
    500: "Something went wrong",
    503: "The log can't be read just now",
}


def status_of(problem: BaseException) -> int:
    return next(status for kind, status in STATUSES if isinstance(problem, kind))


def told(problem: BaseException) -> errors.DecklogError:
    """Return the error that a page may show. Internal errors are replaced, so that no path, SQL or setting is revealed."""
    if isinstance(problem, errors.DecklogError) and not isinstance(problem, errors.Unavailable) and not _is_of_engine(problem):
        return problem
    if isinstance(problem, errors.DecklogError):
        said = errors.Unavailable("the log is out of reach, busy or damaged", hint="At the terminal: decklog doctor")
        said.code, said.retryable = problem.code, problem.retryable
        return said
    return errors.DecklogError("this is a fault in Decklog itself", hint="The terminal where it was started says more.")


def _is_of_engine(problem: errors.DecklogError) -> bool:
    """Return whether the message is from the database; it may name tables, columns and values."""
    return problem.__cause__ is not None and not isinstance(problem.__cause__, errors.DecklogError)


def failure(problem: BaseException) -> dict[str, object]:
    """Return an error in the JSON envelope that all interfaces use."""
    return {"ok": False, "error": told(problem).as_dict(), "warnings": []}
