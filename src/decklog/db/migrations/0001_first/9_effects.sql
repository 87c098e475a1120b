-- Side effects of tools. The intent is written before the act and settled afterwards, so an unfinished one is known and nothing
-- is done twice.
create table effects (
  id            {text} not null primary key,
  run_id        {text} not null references runs (id),
  task_id       {text},
  step          {text} not null,
  tool          {text} not null,
  key           {text} not null,
  state         {text} not null check (
    state = 'intended' or state = 'done' or state = 'failed' or state = 'unknown' or state = 'cleared'
  ),
  arguments     {text} not null,
  facts         {text} not null,
  actor         {text},
  attempts      {integer} not null check (attempts >= 1),
  result        {text},
  result_digest {text},
  error         {text},
  reconciled_by {text},
  note          {text},
  intended_at   {text} not null,
  settled_at    {text},
  check ((state = 'intended') = (actor is not null)),
  check ((state = 'failed') = (error is not null))
){strict};

create unique index effects_by_key on effects (run_id, key);
create index effects_open on effects (run_id, intended_at, id) where state = 'intended' or state = 'unknown';
create index effects_by_time on effects (intended_at, id);

-- Background processes of tools, identified beyond restarts and reused process ids.
create table processes (
  id           {text} not null primary key,
  run_id       {text} not null references runs (id),
  task_id      {text},
  command      {text} not null,
  cwd          {text} not null,
  root         {text} not null,
  folder       {text} not null,
  sandbox      {text} not null,
  state        {text} not null check (
    state = 'running' or state = 'exited' or state = 'stopped' or state = 'timed_out' or state = 'lost'
  ),
  keeper       {text} not null,
  pid          {integer} not null,
  exit_code    {integer},
  signal       {text},
  signals_sent {text} not null,
  started_at   {text} not null,
  ended_at     {text},
  check ((state = 'running') = (ended_at is null))
){strict};

create index processes_by_run on processes (run_id, started_at, id);
create index processes_running on processes (run_id, started_at, id) where state = 'running';
