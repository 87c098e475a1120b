-- How the tasks of a run stand, made of its entries up to number `seq`: an overview reads what came after it and no more. The hash is
-- that of the entry, so that the place is held against the journal. Runs with few entries have no row.
create table run_tallies (
  run_id    {text} not null primary key references runs (id),
  seq       {integer} not null check (seq >= 1),
  hash      {text} not null,
  pending   {integer} not null,
  running   {integer} not null,
  waiting   {integer} not null,
  blocked   {integer} not null,
  paused    {integer} not null,
  done      {integer} not null,
  abandoned {integer} not null,
  failures  {integer} not null
){strict};

-- What a run's entries add up to at every so many of them: counts of its tasks, attempts and charges as of entry `seq`, and the numbers of
-- the entries that began the attempts which were under way then. The hash is that of the entry, so that the place is held against the
-- journal. The three tables after it hold what the entries up to the last of these tell. Whoever looks reads what came after it and no
-- more; runs with few entries have no rows.
create table run_marks (
  run_id            {text} not null references runs (id),
  seq               {integer} not null check (seq >= 1),
  hash              {text} not null,
  pending           {integer} not null,
  running           {integer} not null,
  waiting           {integer} not null,
  blocked           {integer} not null,
  paused            {integer} not null,
  done              {integer} not null,
  abandoned         {integer} not null,
  failures          {integer} not null,
  attempts          {integer} not null,
  failed_attempts   {integer} not null,
  moments           {integer} not null,
  calls             {integer} not null,
  tokens            {integer} not null,
  cost_microdollars {integer} not null,
  unpriced_calls    {integer} not null,
  under_way         {text} not null,
  primary key (run_id, seq)
){strict};

create table run_attempts (
  run_id      {text} not null references runs (id),
  started_seq {integer} not null check (started_seq >= 1),
  task_id     {text} not null,
  number      {integer} not null,
  worker      {text} not null,
  started_at  {text} not null,
  ended_seq   {integer},
  ended_at    {text},
  outcome     {text},
  primary key (run_id, started_seq)
){strict};

create index run_attempts_under_way on run_attempts (run_id) where ended_seq is null;

-- Entries that a person looks for: failures, questions, checkpoints, changes of mind, and tasks that came to an end.
create table run_moments (
  run_id    {text} not null references runs (id),
  what      {text} not null check (
    what = 'failure' or what = 'question' or what = 'checkpoint' or what = 'pivot' or what = 'ended'
  ),
  seq       {integer} not null check (seq >= 1),
  record_id {text},
  primary key (run_id, what, seq)
){strict};

-- The first entry of each record: what there was at an entry is found by them, a page at a time.
create table record_firsts (
  run_id       {text} not null references runs (id),
  record_table {text} not null,
  seq          {integer} not null check (seq >= 1),
  record_id    {text} not null,
  primary key (run_id, record_table, seq)
){strict};
