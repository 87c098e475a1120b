-- What a lesson holds for: versions, paths and a commit. Nothing said, it holds for everything.
alter table lessons add column scope {text} not null default '{}';

-- When something changed for which a lesson holds, and what.
alter table lessons add column outdated_at {text};
alter table lessons add column outdated_by {text};

-- When a lesson was put aside that nothing replaces.
alter table lessons add column retired_at {text};

-- Two lessons that can't both be followed, until someone says which one holds.
create table contradictions (
  id         {text} not null primary key,
  lesson_id  {text} not null references lessons (id),
  other_id   {text} not null references lessons (id),
  about      {text} not null,
  state      {text} not null check (state in ('open', 'settled', 'both_hold')),
  found_at   {text} not null,
  settled_at {text},
  settled_by {text},
  reason     {text},
  check (lesson_id <> other_id),
  check ((settled_at is null) = (state = 'open')),
  unique (lesson_id, other_id)
){strict};

create index contradictions_by_state on contradictions (state, found_at, id);
create index contradictions_by_other on contradictions (other_id);
