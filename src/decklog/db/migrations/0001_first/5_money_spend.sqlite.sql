-- Each charge is added to the sums of its day.
create trigger spend_days_charged after insert on charges
begin
  insert into spend_days
    (run_id, day, model, agent, calls, input_tokens, cache_read_tokens, cache_create_tokens, output_tokens, cost_microdollars, unpriced_calls)
  values
    (coalesce(new.run_id, ''), substr(new.occurred_at, 1, 10), new.model, coalesce(new.agent, ''),
     1, new.input_tokens, new.cache_read_tokens, new.cache_create_tokens, new.output_tokens, coalesce(new.cost_microdollars, 0), (new.cost_microdollars is null))
  on conflict (run_id, day, model, agent) do update set
  calls = spend_days.calls + excluded.calls,
  input_tokens = spend_days.input_tokens + excluded.input_tokens,
  cache_read_tokens = spend_days.cache_read_tokens + excluded.cache_read_tokens,
  cache_create_tokens = spend_days.cache_create_tokens + excluded.cache_create_tokens,
  output_tokens = spend_days.output_tokens + excluded.output_tokens,
  cost_microdollars = spend_days.cost_microdollars + excluded.cost_microdollars,
  unpriced_calls = spend_days.unpriced_calls + excluded.unpriced_calls;
end;

create trigger spend_days_corrected after update on charges
begin
  update spend_days set
    calls = calls - 1,
    input_tokens = input_tokens - old.input_tokens,
    cache_read_tokens = cache_read_tokens - old.cache_read_tokens,
    cache_create_tokens = cache_create_tokens - old.cache_create_tokens,
    output_tokens = output_tokens - old.output_tokens,
    cost_microdollars = cost_microdollars - coalesce(old.cost_microdollars, 0),
    unpriced_calls = unpriced_calls - (old.cost_microdollars is null)
   where run_id = coalesce(old.run_id, '') and day = substr(old.occurred_at, 1, 10) and model = old.model
     and agent = coalesce(old.agent, '');
  delete from spend_days
   where run_id = coalesce(old.run_id, '') and day = substr(old.occurred_at, 1, 10) and calls = 0;
  insert into spend_days
    (run_id, day, model, agent, calls, input_tokens, cache_read_tokens, cache_create_tokens, output_tokens, cost_microdollars, unpriced_calls)
  values
    (coalesce(new.run_id, ''), substr(new.occurred_at, 1, 10), new.model, coalesce(new.agent, ''),
     1, new.input_tokens, new.cache_read_tokens, new.cache_create_tokens, new.output_tokens, coalesce(new.cost_microdollars, 0), (new.cost_microdollars is null))
  on conflict (run_id, day, model, agent) do update set
  calls = spend_days.calls + excluded.calls,
  input_tokens = spend_days.input_tokens + excluded.input_tokens,
  cache_read_tokens = spend_days.cache_read_tokens + excluded.cache_read_tokens,
  cache_create_tokens = spend_days.cache_create_tokens + excluded.cache_create_tokens,
  output_tokens = spend_days.output_tokens + excluded.output_tokens,
  cost_microdollars = spend_days.cost_microdollars + excluded.cost_microdollars,
  unpriced_calls = spend_days.unpriced_calls + excluded.unpriced_calls;
end;

create trigger spend_days_removed after delete on charges
begin
  update spend_days set
    calls = calls - 1,
    input_tokens = input_tokens - old.input_tokens,
    cache_read_tokens = cache_read_tokens - old.cache_read_tokens,
    cache_create_tokens = cache_create_tokens - old.cache_create_tokens,
    output_tokens = output_tokens - old.output_tokens,
    cost_microdollars = cost_microdollars - coalesce(old.cost_microdollars, 0),
    unpriced_calls = unpriced_calls - (old.cost_microdollars is null)
   where run_id = coalesce(old.run_id, '') and day = substr(old.occurred_at, 1, 10) and model = old.model
     and agent = coalesce(old.agent, '');
  delete from spend_days
   where run_id = coalesce(old.run_id, '') and day = substr(old.occurred_at, 1, 10) and calls = 0;
end;
