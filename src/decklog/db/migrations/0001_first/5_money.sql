-- Money and tokens: prices, charges, budgets and reservations.

-- In microdollars per million tokens; null if unknown. Long prompts that cost more have a separate row.
create table prices (
  model              {text} not null,
  valid_from         {text} not null,
  over_tokens        {integer} not null check (over_tokens >= 0),
  input_price        {integer} not null check (input_price >= 0),
  cache_read_price   {integer} check (cache_read_price >= 0),
  cache_create_price {integer} check (cache_create_price >= 0),
  output_price       {integer} not null check (output_price >= 0),
  source             {text},
  sourced_on         {text},
  primary key (model, valid_from, over_tokens)
){strict};

create table budgets (
  id           {text} not null primary key,
  scope        {text} not null check (scope in ('all', 'run', 'group', 'task', 'agent')),
  scope_id     {text},
  period       {text} not null check (period in ('day', 'week', 'month', 'forever')),
  unit         {text} not null check (unit in ('microdollars', 'tokens')),
  ceiling      {integer} not null check (ceiling >= 0),
  action       {text} not null check (action in ('warn', 'stop')),
  warn_percent {integer} not null check (warn_percent >= 1 and warn_percent <= 100),
  set_at       {text} not null,
  proof        {text},
  check ((scope = 'all') = (scope_id is null))
){strict};

-- Scope and id in one text, so that the budgets of a charge are one lookup instead of five.
create unique index budgets_by_scope on budgets ((scope || ' ' || coalesce(scope_id, '')), period, unit);

create table reservations (
  id                {text} not null primary key,
  state             {text} not null check (state = 'open' or state = 'settled' or state = 'released'),
  microdollars      {integer} not null check (microdollars >= 0),
  tokens            {integer} not null check (tokens >= 0),
  used_microdollars {integer} not null check (used_microdollars >= 0),
  used_tokens       {integer} not null check (used_tokens >= 0),
  reserved_at       {text} not null,
  expires_at        {text} not null,
  ended_at          {text},
  run_id            {text} references runs (id),
  group_id          {text},
  task_id           {text},
  agent             {text},
  holder            {text},
  key               {text},
  check ((ended_at is null) = (state = 'open'))
){strict};

create index reservations_open on reservations (expires_at) where state = 'open';
create unique index reservations_by_key on reservations (coalesce(run_id, ''), key) where key is not null;

create table charges (
  id                  {text} not null primary key,
  occurred_at         {text} not null,
  model               {text} not null,
  input_tokens        {integer} not null check (input_tokens >= 0),
  cache_read_tokens   {integer} not null check (cache_read_tokens >= 0),
  cache_create_tokens {integer} not null check (cache_create_tokens >= 0),
  output_tokens       {integer} not null check (output_tokens >= 0),
  cost_microdollars   {integer} check (cost_microdollars >= 0),
  call_site           {text},
  agent               {text},
  agent_id            {text},
  run_id              {text} references runs (id),
  group_id            {text},
  task_id             {text},
  reservation_id      {text} references reservations (id),
  counted_at          {text},
  overdrew            {integer} not null check (overdrew = 0 or overdrew = 1),
  is_late             {integer} not null check (is_late = 0 or is_late = 1),
  key                 {text},
  -- The provider's id of a response, so that two recorders do not charge it twice. Not unique, so that logs can be merged.
  answer_id           {text}
){strict};

-- Each further index slows a charge by some percent: only columns that lists and sums start from have one.
create index charges_by_time on charges (occurred_at, id);
create index charges_by_run on charges (run_id) where run_id is not null;
create index charges_by_task on charges (task_id) where task_id is not null;
create unique index charges_by_key on charges (coalesce(run_id, ''), key) where key is not null;
create index charges_by_answer on charges (answer_id) where answer_id is not null;

-- Derived: the charges of each budget by day. `budgets rebuild` computes them again.
create table budget_days (
  budget_id      {text} not null references budgets (id) on delete cascade,
  day            {text} not null,
  microdollars   {integer} not null,
  tokens         {integer} not null,
  calls          {integer} not null,
  unpriced_calls {integer} not null,
  as_of          {text} not null,
  primary key (budget_id, day)
){strict};

-- Locks: a charge takes one row, a new budget takes all of them while it sums up earlier charges.
create table budget_gates (
  no {integer} not null primary key
){strict};

insert into budget_gates (no) values
  (0), (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14), (15),
  (16), (17), (18), (19), (20), (21), (22), (23), (24), (25), (26), (27), (28), (29), (30), (31);

-- Derived: spending by day (UTC) of the charge, maintained by triggers of `charges`. An empty text means no run or no agent.
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
