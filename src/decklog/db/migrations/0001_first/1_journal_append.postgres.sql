-- Who waits for what: a notification makes every commit of the whole database wait for the one before it, so it is sent only when
-- somebody listens to the stream. A row counts until its time is over, unless its log says again that it is there. `*` is every
-- stream. Nothing of it outlives a crash, and nothing has to.
create unlogged table listeners (
  stream {text} not null,
  log    {text} not null,
  until  timestamptz not null,
  primary key (stream, log)
);

-- Each stream has a channel, and those who listen to every stream have one.
create function announce(p_stream varchar) returns void language sql as $$
  select pg_notify(case l.stream when '*' then 'decklog' else 'decklog_' || md5(l.stream) end, left(l.stream, 200))
    from (select distinct stream from listeners where stream in (p_stream, '*') and until > now()) l
$$;

-- Lock a stream until the transaction ends, and return its head. In PL/pgSQL each statement sees what was committed while the one
-- before it waited for the lock. Also returned: the version of the schema, and whether somebody listens to the stream.
create function lock_stream(
  p_stream varchar, out version bigint, out name varchar, out no bigint, out pos bigint, out hash varchar, out at varchar,
  out is_listened_to boolean
) language plpgsql as $$
begin
  select s.no, s.name into no, name from streams s where s.name = p_stream for update;
  select e.pos, e.hash, e.at into pos, hash, at
    from entries e
   where e.pos >= no * 4294967296 and e.pos < (no + 1) * 4294967296
   order by e.pos desc
   limit 1;
  version := (select max(v.version) from schema_steps v);
  is_listened_to := exists (select 1 from listeners l where l.stream in (p_stream, '*') and l.until > now());
end
$$;
