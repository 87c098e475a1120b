-- The tags of tasks that can be claimed, in the order in which they are given out; `rank` is the priority with its sign changed.
-- The triggers keep it: whatever makes a task ready, or takes it, is seen here.
create table ready_tags (
  tag        {text} not null,
  run_id     {text} not null,
  rank       {integer} not null,
  created_at {text} not null,
  task_id    {text} not null,
  primary key (tag, run_id, rank, created_at, task_id)
);

create function tags_of(list text) returns setof text language plpgsql immutable as $$
begin
  return query
  select distinct tag #>> '{}'
    from json_array_elements(list::json) as tag
   where json_typeof(tag) = 'string';
exception when invalid_text_representation or invalid_parameter_value then
  return;
end $$;

insert into ready_tags (tag, run_id, rank, created_at, task_id)
select tag, t.run_id, -t.priority, t.created_at, t.id
  from tasks t, tags_of(t.tags) tag
 where t.state = 'pending' and t.open_dependencies = 0 and t.tags <> '[]';

create function keep_ready_tags() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' and old.state = 'pending' and old.open_dependencies = 0 then
    delete from ready_tags
     where tag in (select tags_of(old.tags))
       and run_id = old.run_id and rank = -old.priority and created_at = old.created_at and task_id = old.id;
  end if;
  if tg_op <> 'DELETE' and new.state = 'pending' and new.open_dependencies = 0 then
    insert into ready_tags (tag, run_id, rank, created_at, task_id)
    select tag, new.run_id, -new.priority, new.created_at, new.id
      from tags_of(new.tags) tag
    on conflict do nothing;
  end if;
  return null;
end $$;

create trigger ready_tags_added after insert on tasks for each row
  when (new.tags <> '[]' and new.state = 'pending' and new.open_dependencies = 0) execute function keep_ready_tags();
create trigger ready_tags_changed after update of id, run_id, state, open_dependencies, priority, tags, created_at on tasks for each row
  when (old.tags <> '[]' or new.tags <> '[]') execute function keep_ready_tags();
create trigger ready_tags_removed after delete on tasks for each row
  when (old.tags <> '[]' and old.state = 'pending' and old.open_dependencies = 0) execute function keep_ready_tags();
