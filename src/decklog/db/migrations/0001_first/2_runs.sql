-- Runs and the agents that work in them.
create table runs (
  id                 {text} not null primary key,
  goal               {text} not null,
  status             {text} not null check (status in ('planning', 'active', 'paused', 'completed', 'failed', 'cancelled')),
  mode               {text} check (mode in ('simple', 'parallel')),
  repo               {text},
  branch             {text},
  worktree           {text},
  summary            {text},
  current_task_id    {text},
  cycles             {integer} not null check (cycles >= 0),
  replans            {integer} not null check (replans >= 0),
  metadata           {text} not null,
  parent_run_id      {text},
  parent_seq         {integer},
  key                {text} unique,
  started_at         {text} not null,
  updated_at         {text} not null,
  ended_at           {text},
  check ((ended_at is not null) = (status in ('completed', 'failed', 'cancelled')))
){strict};

create index runs_by_start on runs (started_at, id);
create index runs_by_status on runs (status, started_at, id);
create index runs_by_end on runs (ended_at, id) where ended_at is not null;
create index runs_by_repo on runs (repo, started_at, id) where repo is not null;
create index runs_by_parent on runs (parent_run_id, started_at, id) where parent_run_id is not null;

create table agents (
  run_id             {text} not null references runs (id),
  role               {text} not null,
  session            {text},
  turns              {integer} not null check (turns >= 0),
  rotations          {integer} not null check (rotations >= 0),
  last_prompt_path   {text},
  last_response_path {text},
  updated_at         {text} not null,
  primary key (run_id, role)
){strict};
