-- Who is told of what, and how. A rule is the manager's: it makes whoever sends run a command, or call an address.
create table notify_rules (
  id         {text} not null primary key,
  event      {text} not null check (event in ('needs_you', 'budget', 'failure', 'done')),
  channel    {text} not null check (channel in ('command', 'webhook', 'desktop')),
  target     {text} not null,
  secret_env {text} check (secret_env <> ''),
  set_at     {text} not null,
  proof      {text}
){strict};

-- Each thing that a rule tells of is one notice, whoever finds it first. It is taken before it is sent and settled after: what was
-- taken and never settled may have been sent, and is not sent again by itself.
create table notices (
  id         {text} not null primary key,
  rule_id    {text} not null,
  key        {text} not null,
  event      {text} not null check (event in ('needs_you', 'budget', 'failure', 'done')),
  what       {text} not null,
  run_id     {text},
  state      {text} not null check (state in ('due', 'sending', 'sent', 'failed', 'unknown')),
  attempts   {integer} not null check (attempts >= 0),
  due_at     {text} not null,
  sender     {text},
  taken_at   {text},
  error      {text},
  made_at    {text} not null,
  settled_at {text},
  unique (rule_id, key),
  check ((state = 'sending') = (sender is not null)),
  check (state <> 'sending' or taken_at is not null)
){strict};

create index notices_open on notices (due_at, id) where state = 'due' or state = 'sending';
create index notices_by_time on notices (made_at, id);

-- What a rule looks for: runs by their end, and tasks that used up their attempts.
create index runs_by_end on runs (ended_at, id) where ended_at is not null;
create index tasks_blocked on tasks (updated_at, id) where state = 'blocked';
