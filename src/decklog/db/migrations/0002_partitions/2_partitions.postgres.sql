-- Entries and their search words are partitioned by ranges of stream numbers, so a stream and its keys are in one table. The first
-- range has all earlier entries and the reserved streams. `archive` names the file that has the entries of a detached range.
create table entry_ranges (
  first_no {integer} not null primary key,
  end_no   {integer} not null check (end_no > first_no),
  archive  {text}
);

-- Create the tables of a range and attach them. Attaching does not block writers.
create function add_entry_range(p_first bigint, p_end bigint) returns void language plpgsql security definer as $$
declare
  leaf varchar := 'entries_' || p_first;
  text_leaf varchar := 'entry_text_' || p_first;
begin
  execute format('create table %I (like entries including defaults including constraints)', leaf);
  perform prepare_entry_range(leaf);
  execute format(
    'alter table entries attach partition %I for values from (%s) to (%s)', leaf, p_first * 4294967296, p_end * 4294967296);
  execute format('create table %I (like entry_text)', text_leaf);
  execute format(
    'alter table entry_text attach partition %I for values from (%s) to (%s)',
    text_leaf, p_first * 4294967296, p_end * 4294967296);
  insert into entry_ranges (first_no, end_no) values (p_first, p_end);
end
$$;

-- Partitions do not inherit a unique index without the position, nor a statement trigger.
create function prepare_entry_range(leaf varchar) returns void language plpgsql security definer as $$
begin
  execute format(
    'create unique index %I on %I (stream, coalesce(subtype, %L), coalesce(group_id, %L), key) where key is not null',
    leaf || '_by_key', leaf, '', '');
  execute format(
    'create trigger entries_never_go_at_once before truncate on %I for each statement execute function entries_never_go()', leaf);
end
$$;

-- Create the next range when a new stream is near the end of the last one. One transaction creates it; others wait only if their
-- stream has no range yet.
create function make_room_for_stream(p_no bigint) returns void language plpgsql security definer as $$
declare
  last entry_ranges;
  size bigint;
begin
  select * into last from entry_ranges order by first_no desc limit 1;
  size := last.end_no - last.first_no;
  if p_no < last.end_no - size / 8 - 1 then
    return;
  end if;
  if p_no < last.end_no and not pg_try_advisory_xact_lock(4919131752989214) then
    return;
  end if;
  perform pg_advisory_xact_lock(4919131752989214);
  loop
    select * into last from entry_ranges order by first_no desc limit 1;
    exit when p_no < last.end_no - size / 8 - 1;
    begin
      perform add_entry_range(last.end_no, last.end_no + size);
    exception when object_in_use then
      -- A cursor of this transaction reads entries.
      exit when p_no < last.end_no;
      raise;
    end;
  end loop;
end
$$;

do $$
declare
  boundary bigint := (
    select substring(conname from '[0-9]+$')::bigint
      from pg_constraint
     where conrelid = 'entries'::regclass and conname like 'entries\_before\_%' and convalidated
  );
  named varchar;
begin
  -- Security definer: restrict the search path to the schema of the log.
  foreach named in array array['add_entry_range(bigint, bigint)', 'prepare_entry_range(varchar)', 'make_room_for_stream(bigint)'] loop
    execute format('alter function %s set search_path = %I, pg_temp', named, current_schema());
  end loop;
  revoke execute on function add_entry_range, prepare_entry_range from public;

  lock table entry_text, entries in access exclusive mode;
  if boundary is null then
    boundary := coalesce((select max(no) + 1000000 from streams), 16);
  end if;
  alter table entries rename to entries_0;
  for named in select indexrelid::regclass from pg_index where indrelid = 'entries_0'::regclass loop
    execute format('alter index %s rename to %s', named, regexp_replace(named, 'entries_', 'entries_0_'));
  end loop;
  drop trigger entries_never_go on entries_0;
  drop trigger entries_never_change on entries_0;

  create table entries (like entries_0 including defaults) partition by range (pos);
  alter table entries add constraint entries_sound
    check (entry_is_sound(pos, seq, kind, phase, confidence, redacted, record_table, record_id));
  alter table entries add primary key (pos);
  create index entries_by_record on entries (record_table, record_id, seq) where record_table is not null;
  create index entries_by_kind on entries (kind, pos) where kind not in ('tool', 'change');
  create index entries_by_subtype on entries (subtype, pos) where subtype is not null and kind <> 'change';
  create index entries_by_agent on entries (agent, pos) where agent is not null and kind <> 'change';
  create index entries_by_phase on entries (phase, pos) where phase is not null;
  create index entries_by_group on entries (group_id, pos) where group_id is not null;
  create index entries_by_task on entries (task_id, pos) where task_id is not null and record_table is distinct from 'tasks';
  create index entries_by_time on entries (stream, at);
  create trigger entries_never_go before delete on entries for each row execute function entries_never_go();
  create trigger entries_never_change before update on entries for each row execute function entries_never_change();
  create trigger entries_never_go_at_once before truncate on entries for each statement execute function entries_never_go();

  alter table entry_text rename to entry_text_0;
  for named in select indexrelid::regclass from pg_index where indrelid = 'entry_text_0'::regclass loop
    execute format('alter index %s rename to %s', named, regexp_replace(named, 'entry_text_', 'entry_text_0_'));
  end loop;
  create table entry_text (like entry_text_0) partition by range (entry_pos);
  alter table entry_text add primary key (entry_pos);
  create index entry_text_by_word on entry_text using gin (words);

  -- The validated constraints prove that all rows are in the range, so attaching does not read them.
  execute format('alter table entries attach partition entries_0 for values from (minvalue) to (%s)', boundary * 4294967296);
  execute format('alter table entries_0 drop constraint if exists %I', 'entries_before_' || boundary);
  execute format('alter table entry_text attach partition entry_text_0 for values from (minvalue) to (%s)', boundary * 4294967296);
  execute format('alter table entry_text_0 drop constraint if exists %I', 'entry_text_before_' || boundary);
  insert into entry_ranges (first_no, end_no) values (0, boundary);
  perform add_entry_range(boundary, boundary + 1000);
  execute format('alter table streams alter column no restart with %s', boundary);
end
$$;

-- The last entry of each stream, including archived ones.
create view all_stream_heads as
select s.no, s.name, s.no * 4294967296 + s.head_seq as head_pos, s.head_seq, s.head_hash, s.head_at
  from streams s
 where s.head_seq > 0;

-- The last entry of each stream that is not archived.
create view stream_heads as
select s.*
  from all_stream_heads s
 where not exists (select 1 from entry_ranges r where r.archive is not null and s.no >= r.first_no and s.no < r.end_no);
