-- How far the fix of a piece of feedback is proven. Each state says what is known to be so; a kill leaves the last one that is.
create table mends (
  id          {text} not null primary key,
  run_id      {text} not null references runs (id),
  feedback_id {text} not null,
  repo        {text} not null,
  state       {text} not null check (
    state = 'filed' or state = 'triaged' or state = 'located' or state = 'planned' or state = 'fixing' or state = 'fixed'
    or state = 'proven' or state = 'cleared' or state = 'published' or state = 'verified' or state = 'closed' or state = 'dropped'
  ),
  waits_for   {text} check (
    waits_for = 'model' or waits_for = 'approval' or waits_for = 'fix' or waits_for = 'gate' or waits_for = 'merge'
    or waits_for = 'weather' or waits_for = 'person'
  ),
  reason      {text} not null,
  moves       {integer} not null check (moves >= 0),
  rounds      {integer} not null check (rounds >= 0),
  base        {text},
  branch      {text},
  head        {text},
  fix_class   {text},
  confidence  {integer} check (confidence >= 0 and confidence <= 100),
  triage      {text} not null,
  places      {text} not null,
  plan        {text} not null,
  findings    {text} not null,
  fix_run_id  {text},
  proof       {text} not null,
  tests       {text} not null,
  review_id   {text},
  published   {text} not null,
  merged      {text},
  for_run_id  {text},
  created_at  {text} not null,
  updated_at  {text} not null
){strict};

create index mends_by_feedback on mends (feedback_id, created_at, id);
