-- What the gate said of a change. It counts for exactly this tree and this patch, examined by these settings.
create table reviews (
  id          {text} not null primary key,
  run_id      {text} not null references runs (id),
  task_id     {text},
  base        {text} not null,
  head        {text} not null,
  tree        {text} not null,
  patch       {text} not null,
  settings    {text} not null,
  verdict     {text} not null check (
    verdict = 'pass' or verdict = 'request-changes' or verdict = 'block' or verdict = 'unproven'
  ),
  confidence  {integer} check (confidence >= 0 and confidence <= 100),
  reasons     {text} not null,
  passes      {text} not null,
  findings    {text} not null,
  feedback_id {text},
  created_at  {text} not null
){strict};

create index reviews_by_tree on reviews (tree, patch, created_at, id);
create index reviews_by_run on reviews (run_id, created_at, id);

-- What single passes came to while a review was under way: a gate that was killed goes on from there.
create table review_passes (
  id         {text} not null primary key,
  run_id     {text} not null references runs (id),
  task_id    {text},
  counts_for {text} not null,
  number     {integer} not null check (number >= 1 and number <= 7),
  result     {text} not null,
  created_at {text} not null
){strict};

create index review_passes_by_what on review_passes (run_id, counts_for, created_at, id);
