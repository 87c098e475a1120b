-- Whom the log answers to, how far it trusts its agents, and every signed change of that.
-- `id` is the log's own id, which signed statements name; `one` keeps it the only row.
create table trust_contract (
  id           text not null primary key,
  one          bigint not null unique check (one = 1),
  handle       text not null check (handle <> ''),
  channel      text not null check (channel <> ''),
  public_key   text not null check (public_key <> ''),
  persona_name text,
  tier         bigint not null check (tier between 0 and 5),
  is_dev_mode  bigint not null check (is_dev_mode in (0, 1)),
  auto_merge   text not null,
  reviewers    text not null,
  revision     bigint not null check (revision >= 1),
  bound_at     text not null,
  updated_at   text not null
) strict;

create table trust_proposals (
  nonce       text not null primary key,
  contract_id text not null references trust_contract (id),
  change      text not null check (change in ('promote', 'hand-over', 'auto-merge', 'dev-mode', 'reviewers')),
  statement   text not null,
  proposed_by text,
  proposed_at text not null,
  expires_at  text not null,
  signature   text,
  applied_at  text,
  check ((signature is null) = (applied_at is null))
) strict;

create table trust_changes (
  id          text not null primary key,
  contract_id text not null references trust_contract (id),
  revision    bigint not null unique check (revision >= 1),
  kind        text not null check (kind in ('bind', 'promote', 'demote', 'hand-over', 'auto-merge', 'dev-mode', 'reviewers')),
  from_tier   bigint not null check (from_tier between 0 and 5),
  to_tier     bigint not null check (to_tier between 0 and 5),
  handle      text not null,
  reason      text not null,
  by          text,
  details     text not null,
  nonce       text unique references trust_proposals (nonce),
  at          text not null,
  check (to_tier <= from_tier or nonce is not null)
) strict;

create table self_edits (
  id            text not null primary key,
  pr            text not null check (pr <> ''),
  fix_class     text not null check (fix_class in ('prompt', 'doc', 'test', 'tool', 'policy', 'architectural', 'state-machine', 'out-of-scope')),
  files         text not null,
  before_sha    text not null check (before_sha <> ''),
  after_sha     text not null check (after_sha <> ''),
  review_passes text not null,
  confidence    bigint not null check (confidence between 0 and 100),
  em_review     text not null check (em_review <> ''),
  auto_merged   bigint not null check (auto_merged in (0, 1)),
  feedback_id   text references feedback (id),
  ts            text not null,
  unique (pr, after_sha)
) strict;

create index self_edits_by_time on self_edits (ts, id);
create index self_edits_by_feedback on self_edits (feedback_id, ts, id);
