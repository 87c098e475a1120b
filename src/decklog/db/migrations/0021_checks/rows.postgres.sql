-- A server reads the checks of a table anew for every statement that writes to it: on tables with many of them that took longer
-- than the writing. Here one function says the same, which a connection keeps once it has read it.
create function entry_is_sound(
  p_pos bigint, p_seq bigint, p_kind varchar, p_phase varchar, p_confidence varchar, p_redacted bigint, p_record_table varchar,
  p_record_id varchar
) returns boolean language plpgsql immutable parallel safe as $$
begin
  return p_seq >= 1
    and p_seq = p_pos % 4294967296
    and p_kind in ('interaction', 'reasoning', 'event', 'tool', 'change')
    and (p_phase is null
      or p_phase in ('understanding', 'approach', 'decisions', 'risks', 'blockers', 'pivot', 'completion'))
    and (p_confidence is null or p_confidence in ('high', 'medium', 'low'))
    and p_redacted in (0, 1)
    and (p_kind = 'change') = (p_record_table is not null and p_record_id is not null);
end
$$;

alter table entries
  drop constraint entries_check,
  drop constraint entries_check1,
  drop constraint entries_kind_check,
  drop constraint entries_phase_check,
  drop constraint entries_confidence_check,
  drop constraint entries_redacted_check,
  add constraint entries_sound
    check (entry_is_sound(pos, seq, kind, phase, confidence, redacted, record_table, record_id));

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
