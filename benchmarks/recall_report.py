"""Writes what the recall benchmark measured as a page of the documentation."""

from typing import Any

from benchmarks.recall_corpus import DISCREDITED, HELD_OUT, LESSONS, TUNING

_SETS = ("held-out", "tuning", "own words")

_HEAD = """# Recall

Does `memory.recall` find the lesson that helps, when the question has other words than the lesson? And what does it cost?

This page is written by `python -m benchmarks.recall --write`.

## What was asked

{lessons} lessons about real kinds of software failure, and {bad} pieces of advice on the same subjects that were tried and did
harm (confidence 40, 300 days old, three times marked harmful). All other ages, confidences and marks are drawn by chance.

- **held-out**: {held_out} questions in other words than the lessons, written after the ranking was fixed and never tuned on.
- **tuning**: {tuning} such questions, on which the groups of words and the weights were chosen. Their figures flatter.
- **own words**: two words of each lesson, drawn by chance: where plain BM25 is at home.
- **sound advice first**: asked with the words that sound and discredited advice share, how often does the sound one come first?

Lessons, questions and groups of words have one author. The figures compare ways of ranking on this set; they promise nothing for
another.

## What was found

"""

_TAIL = """
*Plain BM25* is an FTS5 table of the texts, asked for any of the question's words. *Text alone* is the match without the
lesson's record. *Groups of words* are the senses in `decklog.stores.memory.synonyms`, which the index holds beside the words. *As when
large* is how more than 20,000 lessons are searched: there, only the rarest senses count. *Hashed words* is an embedder
that has learned nothing (`benchmarks/embedder.py`);
{model}

## What it costs

Each figure is the mean over 24 questions of the best of seven rounds, on SQLite with every commit synced to disk. FTS5 asked for
words alone has fewer matches to score, and finds less: it is the second line of the table above.

"""

_MODEL = "*all-MiniLM-L6-v2* is a trained one, run where its wheel and numpy are installed; nothing in Decklog needs it."
_NO_MODEL = "a trained one is measured too where it is installed (`benchmarks/minilm.py`), and was not in this run."


def render(rows: "list[dict[str, Any]]") -> str:
    """Make the page of the benchmark's rows."""
    counts = {"lessons": len(LESSONS), "bad": len(DISCREDITED), "held_out": len(HELD_OUT), "tuning": len(TUNING)}
    has_model = any("MiniLM" in row["name"] for row in rows)
    scores = [row for row in rows if row["unit"] == "share"]
    costs = [row for row in rows if row["unit"] != "share"]
    tail = _TAIL.format(model=_MODEL if has_model else _NO_MODEL)
    return _HEAD.format(**counts) + _scores(scores) + tail + _costs(costs)


def _scores(rows: "list[dict[str, Any]]") -> str:
    """Lay the scores out with one line for each way to search."""
    table: dict[str, dict[str, float]] = {}
    for row in rows:
        name, _, what = row["name"].rpartition(": ")
        table.setdefault(name, {})[what] = row["value"]
    columns = [f"{of}, {measure}" for of in _SETS for measure in ("recall@5", "MRR")] + ["sound advice first"]
    lines = [f"| | {' | '.join(columns)} |", f"| --- | {' | '.join('---:' for _ in columns)} |"]
    lines += [f"| {name} | {' | '.join(f'{values[column]:.3f}' for column in columns)} |" for name, values in table.items()]
    return "\n".join(lines) + "\n"


def _costs(rows: "list[dict[str, Any]]") -> str:
    lines = ["| | value | beside | target |", "| --- | ---: | ---: | --- |"]
    for row in rows:
        beside = f"{row['ratio']:.2f} x {row['floor']}" if row["ratio"] is not None else ""
        lines.append(f"| {row['name']} | {row['value']} {row['unit']} | {beside} | {row['target']} |")
    return "\n".join(lines) + "\n"
