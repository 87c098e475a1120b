-- Task groups of a run. `number` is their order within it.
create table groups (
  run_id                text not null references runs (id),
  group_id              text not null check (length(group_id) between 1 and 64),
  number                bigint not null check (number >= 1),
  name                  text not null,
  status                text not null
    check (status in ('pending', 'in_progress', 'completed', 'failed', 'approved_pending_merge', 'merging')),
  assigned_to           text,
  revision_count        bigint not null check (revision_count >= 0),
  last_review_status    text check (last_review_status in ('APPROVED', 'CHANGES_REQUESTED')),
  feature_branch        text,
  merge_status          text check (merge_status in ('pending', 'in_progress', 'merged', 'conflict', 'test_failure')),
  complexity            bigint check (complexity between 1 and 10),
  initial_tier          text not null check (initial_tier in ('Developer', 'Senior Software Engineer')),
  context_references    text,
  specializations       text,
  item_count            bigint not null check (item_count >= 1),
  security_sensitive    bigint not null check (security_sensitive in (0, 1)),
  qa_attempts           bigint not null check (qa_attempts >= 0),
  tl_review_attempts    bigint not null check (tl_review_attempts >= 0),
  component_path        text,
  review_iteration      bigint not null check (review_iteration >= 1),
  no_progress_count     bigint not null check (no_progress_count >= 0),
  blocking_issues_count bigint not null check (blocking_issues_count >= 0),
  speckit_task_ids      text,
  created_at            text not null,
  updated_at            text not null,
  primary key (run_id, group_id),
  unique (run_id, number)
) strict;

create index groups_by_status on groups (status, run_id, number);
