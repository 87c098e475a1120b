-- Memory: lessons by topic with their sightings, error patterns, strategies and learnings.
create table topics (
  name        {text} not null primary key,
  description {text} not null,
  created_at  {text} not null
){strict};

create table lessons (
  id               {text} not null primary key,
  topic            {text} not null,
  project          {text},
  body             {text} not null,
  fingerprint      {text} not null,
  payload          {text} not null,
  confidence       {integer} not null check (confidence between 0 and 100),
  source_kind      {text} not null,
  source_id        {text},
  run_id           {text} references runs (id),
  task_id          {text},
  sightings        {integer} not null check (sightings >= 1),
  recall_count     {integer} not null check (recall_count >= 0),
  useful_count     {integer} not null check (useful_count >= 0),
  harmful_count    {integer} not null check (harmful_count >= 0),
  superseded_by    {text} references lessons (id) check (superseded_by <> id),
  created_at       {text} not null,
  last_seen_at     {text} not null,
  last_recalled_at {text},
  -- Versions, paths and a commit that the lesson applies to; empty means everything.
  scope            {text} not null default '{}',
  -- When its scope changed, and how.
  outdated_at      {text},
  outdated_by      {text},
  -- When it was retired without a successor.
  retired_at       {text}
){strict};

create index lessons_by_fingerprint on lessons (fingerprint);
create index lessons_by_topic on lessons (topic, created_at, id);
create index lessons_by_creation on lessons (created_at, id);
create index lessons_by_recall on lessons (last_recalled_at);
create index lessons_by_successor on lessons (superseded_by) where superseded_by is not null;

create table sightings (
  id          {text} not null primary key,
  lesson_id   {text} not null references lessons (id),
  body        {text},
  source_kind {text} not null,
  source_id   {text},
  run_id      {text} references runs (id),
  task_id     {text},
  refs        {text} not null,
  key         {text} unique,
  seen_at     {text} not null
){strict};

create index sightings_by_lesson on sightings (lesson_id, seen_at, id);

create table patterns (
  pattern_hash {text} not null,
  project      {text} not null,
  signature    {text} not null,
  solution     {text} not null,
  confidence   {real} not null check (confidence >= 0 and confidence <= 1),
  occurrences  {integer} not null check (occurrences >= 1),
  lang         {text},
  ttl_days     {integer} not null check (ttl_days > 0),
  created_at   {text} not null,
  last_seen_at {text} not null,
  primary key (pattern_hash, project)
){strict};

create index patterns_by_project on patterns (project, lang);
create index patterns_by_age on patterns (ttl_days, last_seen_at);

create table strategies (
  id           {text} not null primary key,
  project      {text} not null,
  topic        {text} not null check (topic in ('implementation', 'architecture', 'methodology', 'general')),
  insight      {text} not null,
  helpfulness  {integer} not null check (helpfulness >= 0),
  lang         {text},
  framework    {text},
  refs         {text} not null,
  created_at   {text} not null,
  last_seen_at {text} not null
){strict};

create index strategies_by_project on strategies (project, helpfulness, last_seen_at);

create table learnings (
  id          {text} not null primary key,
  task_id     {text} not null,
  observation {text} not null,
  candidate   {text} not null,
  state       {text} not null check (state in ('open', 'promoted', 'dismissed')),
  noted_at    {text} not null,
  run_id      {text} references runs (id),
  key         {text} unique,
  decided_at  {text},
  decided_by  {text},
  reason      {text},
  check ((decided_at is null) = (state = 'open'))
){strict};

create index learnings_by_state on learnings (state, noted_at, id);
create index learnings_by_time on learnings (noted_at, id);

-- A lock: one row, taken to add a lesson, so that two workers do not add the same lesson at once.
create table lesson_desk (
  id {integer} not null primary key check (id = 1)
){strict};
insert into lesson_desk (id) values (1);

-- Contradicting lessons, until somebody decides which one holds.
create table contradictions (
  id         {text} not null primary key,
  lesson_id  {text} not null references lessons (id),
  other_id   {text} not null references lessons (id),
  about      {text} not null,
  state      {text} not null check (state in ('open', 'settled', 'both_hold')),
  found_at   {text} not null,
  settled_at {text},
  settled_by {text},
  reason     {text},
  check (lesson_id <> other_id),
  check ((settled_at is null) = (state = 'open')),
  unique (lesson_id, other_id)
){strict};

create index contradictions_by_state on contradictions (state, found_at, id);
create index contradictions_by_other on contradictions (other_id);

-- Proposed lessons with their evidence, until somebody decides. `subject` identifies one when it is observed again.
create table proposals (
  id          {text} not null primary key,
  kind        {text} not null check (kind in ('check', 'attempt', 'blocker', 'fix', 'review', 'correction')),
  subject     {text} not null unique,
  topic       {text} not null,
  body        {text} not null,
  payload     {text} not null,
  state       {text} not null check (state in ('gathering', 'open', 'known', 'accepted', 'dismissed')),
  confidence  {integer} not null check (confidence between 0 and 100),
  because     {text} not null,
  evidence    {text} not null,
  run_id      {text} references runs (id),
  task_id     {text},
  lesson_id   {text} references lessons (id),
  proposed_at {text} not null,
  seen_at     {text} not null,
  decided_at  {text},
  decided_by  {text},
  reason      {text},
  check ((lesson_id is not null) = (state in ('known', 'accepted'))),
  check ((decided_at is not null) = (state in ('accepted', 'dismissed')))
){strict};

create index proposals_by_state on proposals (state, confidence, proposed_at, id);

-- How far each stream was searched for lessons to propose. The hash is that of the entry, so verify can compare it.
create table proposal_marks (
  stream {text} not null primary key,
  seq    {integer} not null check (seq >= 1),
  hash   {text} not null
){strict};

-- Numbers of indexed lessons and terms, for the weight of rare words.
create table lesson_sums (
  id      {integer} not null primary key check (id = 1),
  lessons {integer} not null,
  terms   {integer} not null
){strict};
insert into lesson_sums (id, lessons, terms) values (1, 0, 0);

-- How far the index of terms has followed the stream of the memory.
create table lesson_marks (
  name {text} not null primary key,
  seq  {integer} not null
){strict};
