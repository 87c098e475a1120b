"""Writes what the recall benchmark measured as a page of the documentation."""

from typing import Any

from benchmarks.recall_sets import RecallSet

_HEAD = """# Recall

Does `memory.recall` find the lesson that helps, when the question has other words than the lesson? And what does it cost?

This page is written by `python -m benchmarks.recall --write`. `python -m benchmarks.recall --set FILE…` measures sets of your own, in the
form that `benchmarks/recall_sets.py` states.

## What was asked

"""

_FOUND = """
All lessons are new and equally sure, so that the match alone decides. Of the first three sets lessons and questions have one author, who
knew both, and which little words are looked for was chosen among four lists by words' figures on all three, held-out and devices
included. **strangers is the set to believe**: nothing was chosen by it. The weights of meaning are older than the choice of words, and
devices was first asked after they were settled.

## What was found

R@5 is the share of the lessons that answer a question which are among the first five; MRR is one over the place of the first of
them, within ten. The difference is that of R@5 from FTS5 with stemming, question by question, with its 95 % interval.

"""

_COSTS = """
## What it costs

Each figure is the mean over 24 questions of the best of seven rounds, on SQLite with every commit synced to disk, in time of the
processor. With meaning, the question is embedded too, in one thread. On PostgreSQL it is the time of its processes and of ours together, after a `vacuum analyze`: a server
does that within minutes, and until then looks up each row of an index twice: measured with its vacuum held back, right
after the lessons had come, a recall took four milliseconds more.

"""


def render(sets: list[RecallSet], rows: "list[dict[str, Any]]", costs: "list[dict[str, Any]]") -> str:
    """Make the page of the benchmark's rows."""
    asked = "".join(f"- **{of.name}**: {len(of.texts)} lessons, {len(of.questions)} questions. {of.about}\n" for of in sets)
    return _HEAD + asked + _FOUND + _scores(rows) + _bytes(rows) + (_COSTS + _costs(costs) if costs else "")


def _bytes(rows: "list[dict[str, Any]]") -> str:
    sizes = [f"{row['set']} {row['bytes'][0]:,}, with vectors {row['bytes'][1]:,}" for row in rows if "bytes" in row]
    return (
        f"\nBytes of a SQLite log for each lesson, its entries and its place in the index included: {'; '.join(sizes)}.\n"
        if sizes
        else ""
    )


def _scores(rows: "list[dict[str, Any]]") -> str:
    lines = [
        "| set | | questions | R@1 | R@5 | R@10 | MRR | difference |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for row in rows:
        difference, low, high = row["difference"]
        lines.append(
            f"| {row['set']}, {row['part']} | {row['way']} | {row['questions']} | {row['at_1']:.3f} | {row['value']:.3f}"
            f" | {row['at_10']:.3f} | {row['mrr']:.3f} | {difference:+.3f} [{low:+.3f}, {high:+.3f}] |"
        )
    return "\n".join(lines) + "\n"


def _costs(rows: "list[dict[str, Any]]") -> str:
    lines = ["| | value | baseline | target |", "| --- | ---: | ---: | --- |"]
    for row in rows:
        baseline = f"{row['ratio']:.2f} x {row['floor']}" if "ratio" in row else ""
        lines.append(f"| {row['name']} | {row['value']} {row['unit']} | {baseline} | {row['target']} |")
    return "\n".join(lines) + "\n"
