-- Tags of ready tasks in the order of claims; `rank` is the negated priority. Triggers maintain it.
create table ready_tags (
  tag         text not null,
  run_id      text not null,
  assigned_to text not null,
  rank        integer not null,
  created_at  text not null,
  task_id     text not null,
  primary key (tag, run_id, assigned_to, rank, created_at, task_id)
) strict, without rowid;

create trigger ready_tags_added after insert on tasks
when new.tags <> '[]' and new.state = 'pending' and new.open_dependencies = 0
begin
  insert or ignore into ready_tags (tag, run_id, assigned_to, rank, created_at, task_id)
  select j.value, new.run_id, coalesce(new.assigned_to, ''), -new.priority, new.created_at, new.id
    from json_each(iif(json_valid(new.tags), new.tags, '[]')) j
   where j.type = 'text';
end;

create trigger ready_tags_changed after update of id, run_id, state, open_dependencies, priority, tags, created_at, assigned_to on tasks
when old.tags <> '[]' or new.tags <> '[]'
begin
  delete from ready_tags
   where old.state = 'pending' and old.open_dependencies = 0
     and tag in (select j.value from json_each(iif(json_valid(old.tags), old.tags, '[]')) j where j.type = 'text')
     and run_id = old.run_id and assigned_to = coalesce(old.assigned_to, '') and rank = -old.priority
     and created_at = old.created_at and task_id = old.id;
  insert or ignore into ready_tags (tag, run_id, assigned_to, rank, created_at, task_id)
  select j.value, new.run_id, coalesce(new.assigned_to, ''), -new.priority, new.created_at, new.id
    from json_each(iif(json_valid(new.tags), new.tags, '[]')) j
   where new.state = 'pending' and new.open_dependencies = 0 and j.type = 'text';
end;

create trigger ready_tags_removed after delete on tasks
when old.tags <> '[]' and old.state = 'pending' and old.open_dependencies = 0
begin
  delete from ready_tags
   where tag in (select j.value from json_each(iif(json_valid(old.tags), old.tags, '[]')) j where j.type = 'text')
     and run_id = old.run_id and assigned_to = coalesce(old.assigned_to, '') and rank = -old.priority
     and created_at = old.created_at and task_id = old.id;
end;
