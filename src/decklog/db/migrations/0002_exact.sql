-- What verify compares to the letter, made anew as it is written from now on: a stream begins at the time of its first entry, says
-- that it is out of order only when it is, and the days of budgets were decided by the time of an entry. Vectors whose digests no entry
-- tells are made again by whoever asks for them.
update streams
   set created_at = coalesce((select e.at from entries e where e.pos = streams.no * 4294967296 + 1), created_at);

update streams
   set in_order = 1
 where in_order = 0
   and not exists (
     select 1
       from entries a
       join entries b on b.pos = a.pos + 1
      where a.pos > streams.no * 4294967296
        and a.pos < (streams.no + 1) * 4294967296 - 1
        and b.at < a.at
   );

update budget_days
   set as_of = coalesce((select max(at) from entries), as_of);

delete from lesson_vectors;
