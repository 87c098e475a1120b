-- What can be claimed, in the order in which it is given out, and apart for each worker that tasks are assigned to: '' is whatever may be
-- anybody's. A claim reads the first of its worker's own and the first of anybody's; what is for others is not walked over.
drop index tasks_ready;
drop index tasks_ready_by_group;
drop index tasks_ready_by_role;

create index tasks_ready on tasks (run_id, coalesce(assigned_to, ''), priority desc, created_at, id)
  where state = 'pending' and open_dependencies = 0;
create index tasks_ready_by_group on tasks (run_id, group_id, coalesce(assigned_to, ''), priority desc, created_at, id)
  where state = 'pending' and open_dependencies = 0 and group_id is not null;
create index tasks_ready_by_role on tasks (run_id, role, coalesce(assigned_to, ''), priority desc, created_at, id)
  where state = 'pending' and open_dependencies = 0 and role is not null;

-- Whoever looks at a run sees what is ready for anybody and what is for somebody, together in its order.
create index tasks_ready_assigned on tasks (run_id, priority desc, created_at, id)
  where state = 'pending' and open_dependencies = 0 and assigned_to is not null;
