-- Each charge is added to the sums of its day.
create function add_spending() returns trigger language plpgsql as $$
begin
  insert into spend_days
    (run_id, day, model, agent, calls,
     input_tokens, cache_read_tokens, cache_create_tokens, output_tokens, cost_microdollars, unpriced_calls)
  select coalesce(run_id, ''), substr(occurred_at, 1, 10), model, coalesce(agent, ''),
         count(*), sum(input_tokens), sum(cache_read_tokens), sum(cache_create_tokens), sum(output_tokens),
         coalesce(sum(cost_microdollars), 0), (count(*) - count(cost_microdollars))
    from added
   group by 1, 2, 3, 4
   order by 1, 2, 3, 4
  on conflict (run_id, day, model, agent) do update set
  calls = spend_days.calls + excluded.calls,
  input_tokens = spend_days.input_tokens + excluded.input_tokens,
  cache_read_tokens = spend_days.cache_read_tokens + excluded.cache_read_tokens,
  cache_create_tokens = spend_days.cache_create_tokens + excluded.cache_create_tokens,
  output_tokens = spend_days.output_tokens + excluded.output_tokens,
  cost_microdollars = spend_days.cost_microdollars + excluded.cost_microdollars,
  unpriced_calls = spend_days.unpriced_calls + excluded.unpriced_calls;
  return null;
end $$;

create function subtract_spending() returns trigger language plpgsql as $$
begin
  insert into spend_days
    (run_id, day, model, agent, calls,
     input_tokens, cache_read_tokens, cache_create_tokens, output_tokens, cost_microdollars, unpriced_calls)
  select coalesce(run_id, ''), substr(occurred_at, 1, 10), model, coalesce(agent, ''),
         -count(*), -sum(input_tokens), -sum(cache_read_tokens), -sum(cache_create_tokens), -sum(output_tokens),
         -coalesce(sum(cost_microdollars), 0), -(count(*) - count(cost_microdollars))
    from removed
   group by 1, 2, 3, 4
   order by 1, 2, 3, 4
  on conflict (run_id, day, model, agent) do update set
  calls = spend_days.calls + excluded.calls,
  input_tokens = spend_days.input_tokens + excluded.input_tokens,
  cache_read_tokens = spend_days.cache_read_tokens + excluded.cache_read_tokens,
  cache_create_tokens = spend_days.cache_create_tokens + excluded.cache_create_tokens,
  output_tokens = spend_days.output_tokens + excluded.output_tokens,
  cost_microdollars = spend_days.cost_microdollars + excluded.cost_microdollars,
  unpriced_calls = spend_days.unpriced_calls + excluded.unpriced_calls;
  delete from spend_days d using removed r
   where d.run_id = coalesce(r.run_id, '') and d.day = substr(r.occurred_at, 1, 10) and d.calls = 0;
  return null;
end $$;

create trigger spend_days_1_subtract after update on charges
  referencing old table as removed for each statement execute function subtract_spending();
create trigger spend_days_2_add after update on charges
  referencing new table as added for each statement execute function add_spending();
create trigger spend_days_charged after insert on charges
  referencing new table as added for each statement execute function add_spending();
create trigger spend_days_removed after delete on charges
  referencing old table as removed for each statement execute function subtract_spending();
