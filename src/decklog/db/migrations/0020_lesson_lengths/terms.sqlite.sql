-- FTS5 knows the lengths of what it has.
select 1;
