"""numpy, loaded so that it multiplies in the thread that asks.

Its threads wait for each other by spinning. For matrices as small as ours they gain nothing on a quiet machine, and on one where
agents and their tests are at work a question took 850 ms with them, and 53 ms without. Who loads numpy before, or sets
OPENBLAS_NUM_THREADS, has it as they wish; and what other programs are told by the environment is left as it is.
"""

import os

from decklog.core.errors import Unavailable

_SETTING = "OPENBLAS_NUM_THREADS"
_given = os.environ.get(_SETTING)
os.environ.setdefault(_SETTING, "1")
try:
    import numpy
except ImportError as problem:
    said = " ".join(str(problem).split())
    raise Unavailable(f"numpy can't be loaded: {said}", hint="Install it anew: pip install --force-reinstall numpy") from problem
finally:
    if _given is None:
        del os.environ[_SETTING]

__all__ = ["numpy"]
