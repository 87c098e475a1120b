"""With whom the work stands: the tasks and groups of the runs that go on, by the role that they are for."""

from decklog.db.base import Database
from decklog.stores.overview.wanted import MOST_GOING_ON, NEWEST_GOING_ON
from decklog.stores.results.overview import Workload

# Of each kind so many are counted: whoever has more of them is told that there are so many at least.
MOST = 1000
FIELDS = ("to_do", "working", "held", "failed", "groups", "failed_groups")
_WHOSE = "run_id in (select id from going)"
# Each by an index of its own, which has nothing of what is over.
_PARTS = (
    f"select 'to_do' as what, role as who from tasks where {_WHOSE} and state = 'pending' and open_dependencies = 0",
    f"select 'to_do' as what, role as who from tasks where {_WHOSE} and state = 'pending' and open_dependencies > 0",
    # In the order of the index of those that run: otherwise SQLite walks over all tasks of these runs.
    f"""select 'working' as what, coalesce(role, worker) as who
          from tasks
         where {_WHOSE} and state = 'running'
         order by run_id, leased_until""",
    # What used up its attempts has failed; what somebody or something else holds is held.
    f"""select case when state = 'blocked' and failures >= max_attempts then 'failed' else 'held' end as what, role as who
          from tasks
         where {_WHOSE} and (state = 'blocked' or state = 'waiting' or state = 'paused')""",
    f"""select 'groups' as what, assigned_to as who
          from groups
         where status in ('pending', 'in_progress', 'approved_pending_merge', 'merging') and {_WHOSE}""",
    f"select 'failed_groups' as what, assigned_to as who from groups where status = 'failed' and {_WHOSE}",
)
_COUNTED = "select what, coalesce(who, '') as who, count(*) from ({part} limit {most}) {name} group by 1, 2"


def read(db: Database) -> list[Workload]:
    """Count what stands with each role, by one statement."""
    parts = [_COUNTED.format(part=part, most=MOST, name=f"p{number}") for number, part in enumerate(_PARTS)]
    sql = f"with going as (select id from ({NEWEST_GOING_ON}) g limit {MOST_GOING_ON}) {' union all '.join(parts)}"
    counts: dict[str, dict[str, int]] = {}
    for what, who, count in db.rows(sql, {})[1]:
        counts.setdefault(who, dict.fromkeys(FIELDS, 0))[what] += count
    return [_workload(who or None, **counts[who]) for who in sorted(counts)]


def _workload(who: str | None, *, to_do: int, working: int, held: int, failed: int, groups: int, failed_groups: int) -> Workload:
    return {
        "who": who,
        "to_do": to_do,
        "working": working,
        "held": held,
        "failed": failed,
        "groups": groups,
        "failed_groups": failed_groups,
    }
