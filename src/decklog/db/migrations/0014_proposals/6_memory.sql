-- Lessons that what happened speaks for, until someone takes them up. `subject` is what each is about: seen again, it is the same one.
create table proposals (
  id          {text} not null primary key,
  kind        {text} not null check (kind in ('check', 'attempt', 'blocker', 'fix', 'review', 'correction')),
  subject     {text} not null unique,
  topic       {text} not null,
  body        {text} not null,
  payload     {text} not null,
  state       {text} not null check (state in ('gathering', 'open', 'known', 'accepted', 'dismissed')),
  confidence  {integer} not null check (confidence between 0 and 100),
  because     {text} not null,
  evidence    {text} not null,
  run_id      {text} references runs (id),
  task_id     {text},
  lesson_id   {text} references lessons (id),
  proposed_at {text} not null,
  seen_at     {text} not null,
  decided_at  {text},
  decided_by  {text},
  reason      {text},
  check ((lesson_id is not null) = (state in ('known', 'accepted'))),
  check ((decided_at is not null) = (state in ('accepted', 'dismissed')))
){strict};

create index proposals_by_state on proposals (state, confidence, proposed_at, id);

-- How far each stream was looked through for what may be proposed. The hash is that of the entry, so that the place is held against the
-- journal.
create table proposal_marks (
  stream {text} not null primary key,
  seq    {integer} not null check (seq >= 1),
  hash   {text} not null
){strict};
