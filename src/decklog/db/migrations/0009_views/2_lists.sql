-- Tasks of a run that are held, and those that wait for others, in the order in which they would be given out; and what waits or is
-- paused in all runs. Neither a claim nor an end touches these.
create index tasks_held on tasks (run_id, priority desc, created_at, id)
  where state = 'blocked' or state = 'waiting' or state = 'paused';
create index tasks_dependent on tasks (run_id, priority desc, created_at, id)
  where state = 'pending' and open_dependencies > 0;
create index tasks_waiting on tasks (updated_at, id) where state = 'waiting';
create index tasks_paused on tasks (updated_at, id) where state = 'paused';

-- Runs by where they work, and by what they are a part of.
create index runs_by_repo on runs (repo, started_at, id) where repo is not null;
create index runs_by_parent on runs (parent_run_id, started_at, id) where parent_run_id is not null;
