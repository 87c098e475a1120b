-- What checks said of a tree. A verdict counts for this tree, this definition of the check and this environment, and for no other.
create table verdicts (
  id          {text} not null primary key,
  run_id      {text} not null references runs (id),
  task_id     {text},
  name        {text} not null,
  tree        {text} not null,
  definition  {text} not null,
  environment {text} not null,
  outcome     {text} not null check (
    outcome = 'pass' or outcome = 'fail' or outcome = 'error' or outcome = 'flaky' or outcome = 'not-run'
  ),
  exit_code   {integer},
  findings    {text} not null,
  artifact_id {text},
  duration_ms {integer} not null check (duration_ms >= 0),
  created_at  {text} not null
){strict};

create index verdicts_by_tree on verdicts (run_id, tree, created_at, id);
create index verdicts_by_run on verdicts (run_id, created_at, id);
