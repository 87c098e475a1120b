-- Approvals: a question about one exact subject, and its answer.
-- `number` orders the approvals of a run, since times can be equal or imported.
create table approvals (
  id              {text} not null primary key,
  run_id          {text} not null references runs (id),
  number          {integer} not null check (number >= 1),
  state           {text} not null check (state in ('open', 'granted', 'denied', 'expired', 'withdrawn')),
  question        {text},
  subject         {text},
  subject_digest  {text} check (length(subject_digest) = 64),
  asked_by        {text} check (asked_by <> ''),
  asked_of        {text},
  asked_at        {text} not null,
  source          {text},
  task_id         {text},
  expires_at      {text},
  default_verdict {text} check (default_verdict in ('granted', 'denied')),
  verdict         {text},
  decided_by      {text} check (decided_by <> ''),
  decided_at      {text},
  rationale       {text},
  payload         {text} not null,
  key             {text},
  -- The signature of the decision. No foreign key: it refers to the decision and is written after it.
  proof           {text},
  -- The number of uses granted, the time until which it is valid, and the number of uses so far.
  max_uses        {integer} check (max_uses >= 1),
  valid_until     {text},
  uses            {integer} check (uses >= 0),
  -- The digest of the stored subject, which differs if parts were redacted.
  about_digest    {text} check (length(about_digest) = 64),
  redacted        {integer} not null default 0 check (redacted in (0, 1)),
  unique (run_id, number),
  unique (run_id, key),
  -- The requester never decides.
  check (lower(trim(asked_by)) <> lower(trim(decided_by))),
  -- A verdict without a request has no subject, so it can't approve anything.
  check ((asked_by is null) = (subject_digest is null) and (asked_by is null) = (question is null)),
  check (asked_by is not null or state in ('granted', 'denied')),
  check ((state = 'open') = (decided_at is null)),
  check (decided_by is null or state in ('granted', 'denied')),
  -- A question is answered by somebody, or by its default.
  check (decided_by is not null or asked_by is null or state not in ('granted', 'denied') or coalesce(default_verdict, '') = state),
  check (default_verdict is null or expires_at is not null)
){strict};

create index approvals_by_time on approvals (asked_at, run_id, number);
create index approvals_by_source on approvals (run_id, source, number) where source is not null;
create index approvals_by_digest on approvals (run_id, subject_digest) where subject_digest is not null;
create index approvals_open on approvals (run_id, expires_at) where state = 'open';

-- Messages from people, and feedback.
create table feedback (
  id                   {text} not null primary key,
  message_id           {text} unique,
  from_handle          {text} not null check (from_handle <> ''),
  channel              {text} not null check (channel <> ''),
  severity             {text} not null check (severity in ('low', 'med', 'high', 'critical')),
  body                 {text} not null check (body <> ''),
  state                {text} not null check (state in ('pending', 'triaged', 'in-fix', 'fix-pr-open', 'verified', 'rejected', 'closed')),
  fix_class            {text} check (fix_class in ('prompt', 'doc', 'test', 'tool', 'policy', 'architectural', 'state-machine', 'out-of-scope')),
  context_url          {text},
  root_cause           {text},
  success_criterion    {text},
  fix_pr_url           {text},
  regression_test_path {text},
  notes                {text} not null,
  key                  {text} unique,
  received_at          {text} not null,
  updated_at           {text} not null,
  closed_at            {text},
  check (state = 'pending' or fix_class is not null),
  check (state <> 'fix-pr-open' or (fix_pr_url is not null and fix_pr_url <> '')),
  check (state <> 'verified' or (regression_test_path is not null and regression_test_path <> '')),
  check ((closed_at is not null) = (state = 'closed'))
){strict};

create index feedback_by_time on feedback (received_at, id);
create index feedback_by_state on feedback (state, received_at, id);
create index feedback_by_class on feedback (fix_class, received_at, id);

-- Recipients of a message: `agent`, `run_id` and `task_id` narrow them; without any it is for everybody.
create table messages (
  id             {text} not null primary key,
  from_handle    {text} not null check (from_handle <> ''),
  is_authorised  {integer} not null check (is_authorised in (0, 1)),
  channel        {text} not null check (channel in ('cli', 'tui', 'gh-comment', 'email', 'daily-standup-reply')),
  severity       {text} not null check (severity in ('info', 'question', 'critical')),
  body           {text} not null check (body <> ''),
  state          {text} not null check (state in ('pending', 'seen', 'answered', 'escalated', 'closed')),
  agent          {text},
  run_id         {text} references runs (id),
  task_id        {text},
  context_url    {text},
  ack            {text} not null,
  ack_sent_at    {text} not null,
  paused_task_id {text},
  pause_problem  {text},
  seen_by        {text},
  seen_at        {text},
  answer         {text},
  answered_by    {text},
  answered_at    {text},
  escalated_to   {text} unique references feedback (id),
  escalated_at   {text},
  closed_at      {text},
  key            {text} unique,
  received_at    {text} not null,
  check ((seen_at is null) = (state = 'pending')),
  check (state <> 'answered' or (answer is not null and answered_at is not null)),
  check (state <> 'escalated' or escalated_to is not null),
  check ((closed_at is not null) = (state = 'closed'))
){strict};

create index messages_by_time on messages (received_at, id);
create index messages_by_state on messages (state, received_at, id);

-- The owner of the log, the autonomy of agents, and each signed change of them.
-- `id` is the id of the log, which signed statements contain; `one` makes it the only row.
create table trust_contract (
  id           {text} not null primary key,
  one          {integer} not null unique check (one = 1),
  handle       {text} not null check (handle <> ''),
  channel      {text} not null check (channel <> ''),
  public_key   {text} not null check (public_key <> ''),
  -- If the key is derived from a password: the parameters and salt of scrypt.
  phrase       {text},
  persona_name {text},
  tier         {integer} not null check (tier between 0 and 5),
  is_dev_mode  {integer} not null check (is_dev_mode in (0, 1)),
  auto_merge   {text} not null,
  reviewers    {text} not null,
  revision     {integer} not null check (revision >= 1),
  bound_at     {text} not null,
  updated_at   {text} not null
){strict};

create table trust_proposals (
  nonce       {text} not null primary key,
  contract_id {text} not null references trust_contract (id),
  change      {text} not null check (change in ('promote', 'hand-over', 'auto-merge', 'dev-mode', 'reviewers')),
  statement   {text} not null,
  proposed_by {text},
  proposed_at {text} not null,
  expires_at  {text} not null,
  signature   {text},
  applied_at  {text},
  check ((signature is null) = (applied_at is null))
){strict};

create table trust_changes (
  id          {text} not null primary key,
  contract_id {text} not null references trust_contract (id),
  revision    {integer} not null unique check (revision >= 1),
  kind        {text} not null check (kind in ('bind', 'promote', 'demote', 'hand-over', 'auto-merge', 'dev-mode', 'reviewers')),
  from_tier   {integer} not null check (from_tier between 0 and 5),
  to_tier     {integer} not null check (to_tier between 0 and 5),
  handle      {text} not null,
  reason      {text} not null,
  by          {text},
  details     {text} not null,
  nonce       {text} unique references trust_proposals (nonce),
  at          {text} not null,
  check (to_tier <= from_tier or nonce is not null)
){strict};

-- Signatures of the owner: the statement of the exact change, and its signature. A nonce is accepted once.
create table proofs (
  nonce       {text} not null primary key,
  contract_id {text} not null references trust_contract (id),
  operation   {text} not null check (operation <> ''),
  statement   {text} not null,
  signature   {text} not null check (signature <> ''),
  proved_at   {text} not null
){strict};

create index proofs_by_time on proofs (proved_at, nonce);

create table self_edits (
  id            {text} not null primary key,
  pr            {text} not null check (pr <> ''),
  fix_class     {text} not null check (fix_class in ('prompt', 'doc', 'test', 'tool', 'policy', 'architectural', 'state-machine', 'out-of-scope')),
  files         {text} not null,
  before_sha    {text} not null check (before_sha <> ''),
  after_sha     {text} not null check (after_sha <> ''),
  review_passes {text} not null,
  confidence    {integer} not null check (confidence between 0 and 100),
  em_review     {text} not null check (em_review <> ''),
  auto_merged   {integer} not null check (auto_merged in (0, 1)),
  feedback_id   {text} references feedback (id),
  edited_at     {text} not null,
  unique (pr, after_sha)
){strict};

create index self_edits_by_time on self_edits (edited_at, id);
create index self_edits_by_feedback on self_edits (feedback_id, edited_at, id);

-- Notification rules. Only the owner writes them: a rule makes the sender run a command or call an address.
create table notify_rules (
  id         {text} not null primary key,
  event      {text} not null check (event in ('needs_attention', 'budget', 'failure', 'done')),
  channel    {text} not null check (channel in ('command', 'webhook', 'desktop')),
  target     {text} not null,
  secret_env {text} check (secret_env <> ''),
  set_at     {text} not null,
  proof      {text}
){strict};

-- One notice per event and rule. It is claimed before it is sent and settled afterwards. A claimed notice that was never settled
-- may have been sent, so it is not sent again automatically.
create table notices (
  id         {text} not null primary key,
  rule_id    {text} not null,
  key        {text} not null,
  event      {text} not null check (event in ('needs_attention', 'budget', 'failure', 'done')),
  what       {text} not null,
  run_id     {text},
  state      {text} not null check (state in ('due', 'sending', 'sent', 'failed', 'unknown')),
  attempts   {integer} not null check (attempts >= 0),
  due_at     {text} not null,
  sender     {text},
  taken_at   {text},
  error      {text},
  made_at    {text} not null,
  settled_at {text},
  unique (rule_id, key),
  check ((state = 'sending') = (sender is not null)),
  check (state <> 'sending' or taken_at is not null)
){strict};

create index notices_open on notices (due_at, id) where state = 'due' or state = 'sending';
create index notices_by_time on notices (made_at, id);
