-- What a task itself became is found by its record. To say it a second time, by its task, took one page of every claim and every
-- end of a task.
drop index entries_by_task;
create index entries_by_task on entries (task_id, pos) where task_id is not null and record_table is distinct from 'tasks';
