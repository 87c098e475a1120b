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

-- What was spent on each day (of UTC, by when it was spent), made of the charges that entries tell of up to the mark of their stream.
-- An empty text stands for no run and no agent.
create table spend_days (
  run_id              {text} not null,
  day                 {text} not null,
  model               {text} not null,
  agent               {text} not null,
  calls               {integer} not null,
  input_tokens        {integer} not null,
  cache_read_tokens   {integer} not null,
  cache_create_tokens {integer} not null,
  output_tokens       {integer} not null,
  cost_microdollars   {integer} not null,
  unpriced_calls      {integer} not null,
  primary key (run_id, day, model, agent)
){strict};

create index spend_days_by_day on spend_days (day);

create table spend_marks (
  stream {text} not null primary key,
  seq    {integer} not null check (seq >= 1),
  hash   {text} not null
){strict};

-- Evidence that has gone stale is rare, and looked for over all runs.
create index criteria_stale on criteria (run_id, number) where is_stale = 1;
