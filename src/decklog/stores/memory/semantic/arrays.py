"""numpy with one BLAS thread.

For matrices as small as ours more threads gain nothing, and they spin while they wait for each other: on a machine busy with
tests a question took 850 ms with them and 53 ms without. Importing numpy earlier, or setting OPENBLAS_NUM_THREADS, overrides it.
"""

import os

from decklog.core.errors import Unavailable

_SETTING = "OPENBLAS_NUM_THREADS"
_given = os.environ.get(_SETTING)
os.environ.setdefault(_SETTING, "1")
try:
    import numpy
except ImportError as problem:
    reason = " ".join(str(problem).split())
    raise Unavailable(
        f"numpy can't be loaded: {reason}", hint="Install it anew: pip install --force-reinstall numpy"
    ) from problem
finally:
    if _given is None:
        del os.environ[_SETTING]

__all__ = ["numpy"]
