-- PostgreSQL parses table checks for each statement, but a function once per connection.
create function task_is_sound(
  p_state varchar, p_outcome varchar, p_worker varchar, p_leased_until varchar, p_priority bigint, p_open_dependencies bigint,
  p_max_attempts bigint, p_attempts bigint, p_failures bigint, p_fence bigint, p_blocker_repeats bigint
) returns boolean language plpgsql immutable parallel safe as $$
begin
  return p_state in ('pending', 'running', 'waiting', 'blocked', 'paused', 'done', 'abandoned')
    and (p_outcome is null
      or p_outcome in ('done', 'failed', 'expired', 'released', 'blocked', 'paused', 'parked', 'abandoned'))
    and (p_state = 'running') = (p_worker is not null)
    and (p_state = 'running') = (p_leased_until is not null)
    and p_priority between 0 and 100
    and p_open_dependencies >= 0
    and p_max_attempts >= 1
    and p_attempts >= 0
    and p_failures >= 0
    and p_fence >= 0
    and p_blocker_repeats >= 0;
end
$$;

alter table tasks
  drop constraint tasks_state_check,
  drop constraint tasks_outcome_check,
  drop constraint tasks_check,
  drop constraint tasks_check1,
  drop constraint tasks_priority_check,
  drop constraint tasks_open_dependencies_check,
  drop constraint tasks_max_attempts_check,
  drop constraint tasks_attempts_check,
  drop constraint tasks_failures_check,
  drop constraint tasks_fence_check,
  drop constraint tasks_blocker_repeats_check,
  add constraint tasks_sound
    check (
      task_is_sound(
        state, outcome, worker, leased_until, priority, open_dependencies, max_attempts, attempts, failures, fence,
        blocker_repeats
      )
    );
