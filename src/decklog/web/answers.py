"""From errors to HTTP statuses, and what of an error a page may say."""

from decklog.core import errors

# The first class an error is an instance of decides.
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
    """Return an error as a page may tell it: of trouble that is not the reader's, no path, statement or setting is shown."""
    if isinstance(problem, errors.DecklogError) and not isinstance(problem, errors.Unavailable) and not _is_of_engine(problem):
        return problem
    if isinstance(problem, errors.DecklogError):
        said = errors.Unavailable("the log is out of reach, busy or damaged", hint="At the terminal: decklog doctor")
        said.code, said.retryable = problem.code, problem.retryable
        return said
    return errors.DecklogError("this is a fault in Decklog itself", hint="The terminal where it was started says more.")


def _is_of_engine(problem: errors.DecklogError) -> bool:
    """Return whether the words are a database's: they may name tables, columns and values."""
    return problem.__cause__ is not None and not isinstance(problem.__cause__, errors.DecklogError)


def failure(problem: BaseException) -> dict[str, object]:
    """Return an error in the envelope that every surface has."""
    return {"ok": False, "error": told(problem).as_dict(), "warnings": []}
