"""How Task Master's words stand for ours, and ours for theirs."""

from decklog.stores.tasks.task import TaskState

PLACES = (".taskmaster/tasks/tasks.json", "tasks/tasks.json", "tasks.json")
MAIN = "master"
# Under this name a task that was made here says what it is called here.
OURS = "decklog"

STATES = {
    "pending": TaskState.PENDING,
    "in-progress": TaskState.PAUSED,
    "done": TaskState.DONE,
    "completed": TaskState.DONE,
    "review": TaskState.PAUSED,
    "deferred": TaskState.PAUSED,
    "cancelled": TaskState.ABANDONED,
    "blocked": TaskState.BLOCKED,
}
WORDS = {
    TaskState.PENDING: "pending",
    TaskState.RUNNING: "in-progress",
    TaskState.WAITING: "review",
    TaskState.BLOCKED: "blocked",
    TaskState.PAUSED: "deferred",
    TaskState.DONE: "done",
    TaskState.ABANDONED: "cancelled",
}
PRIORITIES = {"low": 30, "medium": 50, "high": 70, "critical": 90}

# What a worker should see, and has no field of its own, stands among the task's inputs under the name of the system.
SHOWN = ("details", "complexity", "recommendedSubtasks", "expansionPrompt", "previousStatus", "effort", "metadata")
PARENTS = ("parentTaskId", "parentId", "parentTask")


def priority_word(priority: int) -> str:
    """Return the nearest of Task Master's priorities."""
    return min(PRIORITIES, key=lambda word: abs(PRIORITIES[word] - priority))
