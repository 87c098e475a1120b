"""How far the text index has come in each stream: it catches up from there when someone searches.

Kept up to date with every append, it would cost half of each; most entries are never searched for.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from decklog.db.base import Database

_BATCH = 5000
SIZE = 2**32


def catch_up(database: "Database", stream_no: int | None, insert: str, *, going_on: bool = False) -> bool:
    """Bring the index up to date, for one stream, all, or those that go on; `insert` indexes the entries from :mark to :end.

    False where that can't be: a log that is only read, or inside of a read, which would never see it done.
    """
    if database.read_only or database.is_reading:
        return False
    for number, mark, newest in database.read(lambda: not_indexed(database, stream_no, going_on=going_on)):
        for end in (*range(mark + _BATCH, newest, _BATCH), newest):
            database.write(lambda number=number, end=end: _index(database, number, end, insert))  # type: ignore[misc]
    return True


# Those of runs that are not over, those of no run, and those that no search has met yet.
_GOING_ON = """
s.no in (
  select n.no from runs r join streams n on n.name = r.id
   where r.status = 'active' or r.status = 'planning' or r.status = 'paused'
  union
  select n.no from streams n where n.name >= '@' and n.name < 'A'
  union
  select n.no from streams n where n.no > coalesce((select max(stream_no) from entry_text_marks), 0)
)
"""


def _not_indexed(wanted: str) -> str:
    return f"""
        select no, mark, (select max(pos) from entries where pos > mark and pos < (no + 1) * {SIZE})
          from (
            select s.no, coalesce(m.pos, s.no * {SIZE}) as mark
              from streams s
              left join entry_text_marks m on m.stream_no = s.no
             where {wanted}
          ) marked
         where exists (select 1 from entries where pos > mark and pos < (no + 1) * {SIZE})
        """


_NOT_INDEXED, _NOT_INDEXED_OF_ONE, _NOT_INDEXED_GOING_ON = map(_not_indexed, ("true", "s.no = :no", _GOING_ON))


def not_indexed(database: "Database", stream_no: int | None, *, going_on: bool = False) -> "list[tuple[int, int, int]]":
    """List streams with entries after their mark: number, mark and newest position."""
    if stream_no is not None:
        return database.rows(_NOT_INDEXED_OF_ONE, {"no": stream_no})[1]
    return database.rows(_NOT_INDEXED_GOING_ON if going_on else _NOT_INDEXED, {})[1]


def _index(database: "Database", number: int, end: int, insert: str) -> None:
    """Index a stream's entries from its mark up to a position; another process may have done so meanwhile."""
    bound = {"number": number, "start": number * SIZE, "end": end}
    database.count("insert into entry_text_marks (stream_no, pos) values (:number, :start) on conflict do nothing", bound)
    row = database.one("select pos from entry_text_marks where stream_no = :number for update", bound)
    assert row is not None
    if row[0] < end:
        database.count(insert, {**bound, "mark": row[0]})
        database.count("update entry_text_marks set pos = :end where stream_no = :number", bound)
