-- Who waits for what: a notification makes every commit of the whole database wait for the one before it, so it is sent only when
-- somebody listens to the stream. A row counts until its time is over, unless its log says again that it is there. `*` is every
-- stream. Nothing of it outlives a crash, and nothing has to.
create unlogged table listeners (
  stream {text} not null,
  log    {text} not null,
  until  timestamptz not null,
  primary key (stream, log)
);

create function announce(p_channel varchar, p_stream varchar) returns void language sql as $$
  select pg_notify(p_channel, left(p_stream, 200))
   where exists (select 1 from listeners l where l.stream in (p_stream, '*') and l.until > now())
$$;

-- Appending in one statement instead of four that go to and fro: lock the stream, find its head, chain the entry to it, tell
-- those who watch. The caller writes the entry down to be hashed; only its number is not known before the stream is locked.
-- Written in PL/pgSQL because each statement in it sees what was committed while it waited for the lock.
-- Gives no row when there is no such stream, and an empty one when the key is known.
create function append_entry(
  p_before varchar, p_after varchar, p_stream varchar, p_at varchar, p_kind varchar, p_subtype varchar, p_agent varchar,
  p_agent_id varchar, p_group_id varchar, p_task_id varchar, p_iteration bigint, p_phase varchar, p_confidence varchar,
  p_redacted bigint, p_key varchar, p_record_table varchar, p_record_id varchar, p_refs varchar, p_body_digest varchar,
  p_payload_digest varchar, p_body varchar, p_payload varchar, p_channel varchar
) returns table (new_pos bigint, new_hash varchar)
language plpgsql as $$
declare
  stream_start bigint;
  head record;
begin
  select s.no * 4294967296 into stream_start from streams s where s.name = p_stream for update;
  if stream_start is null then
    return;
  end if;
  select e.pos, e.hash, e.at into head
    from entries e
   where e.pos >= stream_start and e.pos < stream_start + 4294967296
   order by e.pos desc
   limit 1;
  new_pos := coalesce(head.pos, stream_start) + 1;
  new_hash := encode(
    sha256(convert_to(coalesce(head.hash, '') || p_before || (new_pos - stream_start) || p_after, 'UTF8')), 'hex'
  );
  insert into entries (
    pos, stream, seq, at, hash, kind, subtype, agent, agent_id, group_id, task_id, iteration, phase, confidence, redacted, key,
    record_table, record_id, refs, body_digest, payload_digest, body, payload
  )
  values (
    new_pos, p_stream, new_pos - stream_start, p_at, new_hash, p_kind, p_subtype, p_agent, p_agent_id, p_group_id, p_task_id,
    p_iteration, p_phase, p_confidence, p_redacted, p_key, p_record_table, p_record_id, p_refs, p_body_digest,
    p_payload_digest, p_body, p_payload
  )
  on conflict do nothing;
  if not found then
    new_pos := null;
    new_hash := null;
  else
    if p_at < head.at collate "C" then
      update streams set in_order = 0 where name = p_stream and in_order = 1;
    end if;
    perform announce(p_channel, p_stream);
  end if;
  return next;
end
$$;
