-- What was spent on each day over all runs: made with `spend_days`, so that a month is as many rows as it has models and agents,
-- however many runs there are.
create table spend_totals (
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
  primary key (day, model, agent)
){strict};

insert into spend_totals (day, model, agent, calls, input_tokens, cache_read_tokens, cache_create_tokens, output_tokens, cost_microdollars, unpriced_calls)
select day, model, agent,
       sum(calls),
       sum(input_tokens),
       sum(cache_read_tokens),
       sum(cache_create_tokens),
       sum(output_tokens),
       sum(cost_microdollars),
       sum(unpriced_calls)
  from spend_days
 group by day, model, agent;

-- The streams that have charges after their mark: whoever adds up days looks at these and no others. The trigger of charges keeps it, and
-- writes only for the first charge after a mark.
create table spend_open (
  stream {text} not null primary key
){strict};

insert into spend_open (stream)
select distinct coalesce(run_id, '@ledger') from charges;
