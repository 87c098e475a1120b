-- SQLite keeps checks with the statement that was prepared.
select 1;
