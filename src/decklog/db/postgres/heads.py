"""The heads of streams: a partitioned journal has each stream's last entry in the stream's row."""

from decklog.db.base import STREAM_SIZE, Database

# Once in a transaction: PostgreSQL would pass over all versions of the row that the transaction made before.
KEEP = b"update streams set head_seq = $2, head_hash = $3, head_at = $4 where no = $1"
# In every statement that reads the heads.
READERS = ("head_", "lock_stream")
_NEWEST = f"(s.no * {STREAM_SIZE} + s.head_seq)"
_WRONG = f"""
select s.name
  from streams s
 where not exists (select 1 from entry_ranges r where r.archive is not null and s.no >= r.first_no and s.no < r.end_no)
   and case when s.head_seq between 0 and {STREAM_SIZE - 1}
       then not exists (select 1 from entries e
                         where e.pos = {_NEWEST} and e.seq = s.head_seq and e.hash = s.head_hash and e.at = s.head_at)
         or exists (select 1 from entries e where e.pos > {_NEWEST} and e.pos < (s.no + 1) * {STREAM_SIZE})
       else true end
 order by s.no
"""
DERIVE = f"""
update streams s
   set head_seq = h.seq, head_hash = h.hash, head_at = h.at
  from (
    select t.no, coalesce(e.seq, 0) as seq, coalesce(e.hash, '') as hash, coalesce(e.at, '') as at
      from streams t
      left join lateral (
        select seq, hash, at
          from entries
         where pos >= t.no * {STREAM_SIZE} and pos < (t.no + 1) * {STREAM_SIZE}
         order by pos desc
         limit 1
      ) e on true
  ) h
 where h.no = s.no
   and not exists (select 1 from entry_ranges r where r.archive is not null and s.no >= r.first_no and s.no < r.end_no)
   and (s.head_seq, s.head_hash, s.head_at) is distinct from (h.seq, h.hash, h.at)
"""


def wrong(db: Database) -> list[str]:
    """Name the streams whose row does not have their last entry as the head."""
    return [name for (name,) in db.rows(_WRONG, {})[1]]


def derive(db: Database) -> None:
    """Take the heads of all streams from their entries."""
    db.count(DERIVE, {})
