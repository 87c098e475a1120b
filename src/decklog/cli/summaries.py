"""One line for each command and each store, kept true by a test."""

SUMMARIES = {
    "init": "Make a log for this folder and everything below it.",
    "where": "Say which log a call from here means, and why.",
    "migrate": "Bring the log's schema up to date.",
    "doctor": "Look for trouble with the engine, the file and the schema, and say what mends it.",
    "verify": "Walk the hash chains and rebuild every record; name the first thing that is wrong (exit 1).",
    "watch": "Show entries as they happen, of one run or of all.",
    "search": "Find entries that have all the words, newest first; `word*` matches a beginning.",
    "redact": "Copy text from a file or stdin to stdout with its secrets replaced by `[redacted:KIND]`.",
    "demo": "Watch workers share a run, one of them killed in the middle, and nothing lost.",
    "bazinga": "Answer as bazinga-db does, so that agents' prompts and scripts for it go on working.",
    "journal": "Appends entries and finds them again.",
    "runs": "Starts runs, follows what becomes of them, and remembers who worked in them.",
    "groups": "Keeps the task groups of every run: who has them, how their reviews go, and whether they are merged.",
    "tasks": "Plans tasks, gives them to workers one at a time, and keeps what came of each attempt.",
    "plans": "Keeps one plan per run. Phases are rows of their own, so those who finish different ones never meet.",
    "criteria": "Keeps the success criteria of every run. One is named by its exact text, or by its number within the run.",
    "approvals": "Asks people and gates, and keeps what they answered, bound to the exact thing they were asked about.",
    "states": "Keeps state documents and their versions, checkpoints of runs and snapshots of paused tasks.",
    "artifacts": "Remembers files, and keeps the bytes of those that are given with them.",
    "outputs": "Keeps every output of every skill of a run.",
}
