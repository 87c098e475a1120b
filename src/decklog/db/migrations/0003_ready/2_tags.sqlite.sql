-- The tags of tasks that can be claimed, in the order in which they are given out; `rank` is the priority with its sign changed.
-- The triggers keep it: whatever makes a task ready, or takes it, is seen here.
create table ready_tags (
  tag        text not null,
  run_id     text not null,
  rank       integer not null,
  created_at text not null,
  task_id    text not null,
  primary key (tag, run_id, rank, created_at, task_id)
) strict, without rowid;

insert or ignore into ready_tags (tag, run_id, rank, created_at, task_id)
select j.value, t.run_id, -t.priority, t.created_at, t.id
  from tasks t, json_each(iif(json_valid(t.tags), t.tags, '[]')) j
 where t.state = 'pending' and t.open_dependencies = 0 and t.tags <> '[]' and j.type = 'text';

create trigger ready_tags_added after insert on tasks
when new.tags <> '[]' and new.state = 'pending' and new.open_dependencies = 0
begin
  insert or ignore into ready_tags (tag, run_id, rank, created_at, task_id)
  select j.value, new.run_id, -new.priority, new.created_at, new.id
    from json_each(iif(json_valid(new.tags), new.tags, '[]')) j
   where j.type = 'text';
end;

create trigger ready_tags_changed after update of id, run_id, state, open_dependencies, priority, tags, created_at on tasks
when old.tags <> '[]' or new.tags <> '[]'
begin
  delete from ready_tags
   where old.state = 'pending' and old.open_dependencies = 0
     and tag in (select j.value from json_each(iif(json_valid(old.tags), old.tags, '[]')) j where j.type = 'text')
     and run_id = old.run_id and rank = -old.priority and created_at = old.created_at and task_id = old.id;
  insert or ignore into ready_tags (tag, run_id, rank, created_at, task_id)
  select j.value, new.run_id, -new.priority, new.created_at, new.id
    from json_each(iif(json_valid(new.tags), new.tags, '[]')) j
   where new.state = 'pending' and new.open_dependencies = 0 and j.type = 'text';
end;

create trigger ready_tags_removed after delete on tasks
when old.tags <> '[]' and old.state = 'pending' and old.open_dependencies = 0
begin
  delete from ready_tags
   where tag in (select j.value from json_each(iif(json_valid(old.tags), old.tags, '[]')) j where j.type = 'text')
     and run_id = old.run_id and rank = -old.priority and created_at = old.created_at and task_id = old.id;
end;
