-- Tags of ready tasks in the order of claims; `rank` is the negated priority. Triggers maintain it.
create table ready_tags (
  tag        {text} not null,
  run_id     {text} not null,
  rank       {integer} not null,
  created_at {text} not null,
  task_id    {text} not null,
  assigned_to {text} not null,
  primary key (tag, run_id, assigned_to, rank, created_at, task_id)
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

create function keep_ready_tags() returns trigger language plpgsql as $$
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

create trigger ready_tags_added after insert on tasks for each row
  when (new.tags <> '[]' and new.state = 'pending' and new.open_dependencies = 0) execute function keep_ready_tags();
create trigger ready_tags_changed
  after update of id, run_id, state, open_dependencies, priority, tags, created_at, assigned_to on tasks for each row
  when (old.tags <> '[]' or new.tags <> '[]') execute function keep_ready_tags();
create trigger ready_tags_removed after delete on tasks for each row
  when (old.tags <> '[]' and old.state = 'pending' and old.open_dependencies = 0) execute function keep_ready_tags();
