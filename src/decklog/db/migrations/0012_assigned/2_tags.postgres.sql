-- The tags of what is ready stand apart for each worker too.
alter table ready_tags drop constraint ready_tags_pkey;
alter table ready_tags add column assigned_to {text} not null default '';
update ready_tags set assigned_to = t.assigned_to from tasks t where t.id = ready_tags.task_id and t.assigned_to is not null;
alter table ready_tags alter column assigned_to drop default;
alter table ready_tags add primary key (tag, run_id, assigned_to, rank, created_at, task_id);

create or replace function keep_ready_tags() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' and old.state = 'pending' and old.open_dependencies = 0 then
    delete from ready_tags
     where tag in (select tags_of(old.tags))
       and run_id = old.run_id and assigned_to = coalesce(old.assigned_to, '') and rank = -old.priority
       and created_at = old.created_at and task_id = old.id;
  end if;
  if tg_op <> 'DELETE' and new.state = 'pending' and new.open_dependencies = 0 then
    insert into ready_tags (tag, run_id, assigned_to, rank, created_at, task_id)
    select tag, new.run_id, coalesce(new.assigned_to, ''), -new.priority, new.created_at, new.id
      from tags_of(new.tags) tag
    on conflict do nothing;
  end if;
  return null;
end $$;

drop trigger ready_tags_changed on tasks;
create trigger ready_tags_changed
  after update of id, run_id, state, open_dependencies, priority, tags, created_at, assigned_to on tasks for each row
  when (old.tags <> '[]' or new.tags <> '[]') execute function keep_ready_tags();
