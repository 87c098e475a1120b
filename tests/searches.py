"""How tests search for examples: the same ones each time by default, new ones when exploring."""

from hypothesis import settings

EVERY_TIME = "every-time"
EXPLORE = "explore"

# No deadlines: how long an example takes says more about the machine than about the code.
settings.register_profile(EVERY_TIME, derandomize=True, deadline=None, print_blob=True)
settings.register_profile(EXPLORE, derandomize=False, deadline=None, print_blob=True)
settings.load_profile(EVERY_TIME)
