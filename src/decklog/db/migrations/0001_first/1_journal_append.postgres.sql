-- Who listens to which stream; `*` is every stream. NOTIFY serializes commits, so it is sent only if somebody listens.
-- A row counts until it expires; its listener renews it. The table is unlogged: a crash may empty it.
create unlogged table listeners (
  stream {text} not null,
  log    {text} not null,
  until  timestamptz not null,
  primary key (stream, log)
);

-- One channel per stream, and one for those who listen to every stream.
create function announce(p_stream varchar) returns void language sql as $$
  select pg_notify(case l.stream when '*' then 'decklog' else 'decklog_' || md5(l.stream) end, left(l.stream, 200))
    from (select distinct stream from listeners where stream in (p_stream, '*') and until > now()) l
$$;

-- Lock a stream until the transaction ends. Return its head, the schema version, and whether somebody listens to the stream.
-- In PL/pgSQL each statement sees what was committed while the statement before it waited for the lock.
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
