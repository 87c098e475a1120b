-- Only the worker that a task is assigned to gets it. Whoever waits for work looks here whether anything is meant for somebody; the
-- index says nothing of states, so that claims and ends do not touch it.
alter table tasks add column assigned_to {text};

create index tasks_assigned on tasks (run_id, assigned_to) where assigned_to is not null;

-- How one task is linked with another. Only `blocks` holds it back; with `parent` the second is whole only with the first.
alter table dependencies add column kind {text} not null default 'blocks'
  check (kind = 'blocks' or kind = 'parent' or kind = 'related' or kind = 'discovered-from');

create unique index dependencies_one_parent on dependencies (task_id) where kind = 'parent';

create table task_comments (
  id         {text} not null primary key,
  run_id     {text} not null references runs (id),
  task_id    {text} not null references tasks (id),
  author     {text} not null,
  body       {text} not null,
  created_at {text} not null
){strict};

create index task_comments_by_task on task_comments (task_id, created_at, id);

-- Sets of tasks that are planned again and again. A version is never changed: what was made from it can be told by it.
create table templates (
  name        {text} not null,
  version     {integer} not null check (version >= 1),
  description {text} not null,
  tasks       {text} not null,
  created_at  {text} not null,
  primary key (name, version)
){strict};

-- What a run is to do again and again. `next_at` is when a claim, or whoever looks, next makes tasks of it; none while it is paused.
create table schedules (
  id              {text} not null primary key,
  run_id          {text} not null references runs (id),
  name            {text} not null,
  rule            {text} not null,
  zone            {text} not null,
  catch_up        {text} not null check (catch_up = 'none' or catch_up = 'one' or catch_up = 'all'),
  catch_up_limit  {integer} not null check (catch_up_limit between 1 and 100),
  late_seconds    {integer} not null check (late_seconds >= 0),
  task            {text},
  template        {text},
  template_values {text} not null,
  next_at         {text},
  last_at         {text},
  occurrences     {integer} not null check (occurrences >= 0),
  reason          {text},
  created_at      {text} not null,
  updated_at      {text} not null,
  unique (run_id, name),
  check ((task is null) <> (template is null))
){strict};

create index schedules_due on schedules (run_id, next_at) where next_at is not null;
