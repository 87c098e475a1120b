-- What can be claimed, by group and by role, in the order in which it is given out. Tasks without either are not in here.
create index tasks_ready_by_group on tasks (run_id, group_id, priority desc, created_at, id)
  where state = 'pending' and open_dependencies = 0 and group_id is not null;
create index tasks_ready_by_role on tasks (run_id, role, priority desc, created_at, id)
  where state = 'pending' and open_dependencies = 0 and role is not null;
