-- Derived: task counts of a run up to entry `seq`; an overview reads only later entries. The hash is that of the entry, so verify
-- can compare it. Runs with few entries have no row.
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

-- Derived: counts of tasks, attempts and charges at regular entries `seq` of a run, and the entries that began open attempts. The
-- hash is that of the entry, so verify can compare it. The next three tables cover the entries up to the last of these rows.
-- Readers read only later entries; runs with few entries have no rows.
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

-- Entries that people look for: failures, questions, checkpoints, changed decisions and finished tasks.
create table run_moments (
  run_id    {text} not null references runs (id),
  what      {text} not null check (
    what = 'failure' or what = 'question' or what = 'checkpoint' or what = 'pivot' or what = 'ended'
  ),
  seq       {integer} not null check (seq >= 1),
  record_id {text},
  primary key (run_id, what, seq)
){strict};

-- The first entry of each record: lists the records that existed at an entry, by page.
create table record_firsts (
  run_id       {text} not null references runs (id),
  record_table {text} not null,
  seq          {integer} not null check (seq >= 1),
  record_id    {text} not null,
  primary key (run_id, record_table, seq)
){strict};
