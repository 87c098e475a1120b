-- Bazinga's tables, each as a question to a log, whose own tables have `log.` before them.
-- time(…) is a time as bazinga spells it.

-- sessions
select r.id as session_id,
       time(r.started_at) as start_time,
       time(r.ended_at) as end_time,
       r.mode,
       nullif(r.goal, '') as original_requirements,
       case r.status when 'completed' then 'completed' when 'failed' then 'failed' when 'cancelled' then 'failed' else 'active'
       end as status,
       r.branch as initial_branch,
       case when r.metadata = '{}' then null else r.metadata end as metadata,
       time(r.started_at) as created_at
  from log.runs r;

-- orchestration_logs
select e.seq as id,
       e.stream as session_id,
       time(e.at) as timestamp,
       e.iteration,
       coalesce(e.agent, 'unknown') as agent_type,
       e.agent_id,
       coalesce(e.body, (select cast(plain_bytes(b.bytes, b.size) as text) from log.blobs b where b.digest = e.body_digest), '') as content,
       e.kind as log_type,
       e.phase as reasoning_phase,
       e.confidence as confidence_level,
       e.refs as references_json,
       e.redacted,
       e.group_id,
       e.subtype as event_subtype,
       coalesce(e.payload, (select cast(plain_bytes(b.bytes, b.size) as text) from log.blobs b where b.digest = e.payload_digest)) as event_payload,
       case when substr(e.key, 1, 7) = 'import:' then null else e.key end as idempotency_key
  from log.entries e
 where e.kind in ('interaction', 'reasoning', 'event')
   and coalesce(e.subtype, '') not in ('imported', 'imported.columns', 'imported.row');

-- state_snapshots
select s.rowid as id,
       s.run_id as session_id,
       s.group_id,
       time(s.updated_at) as timestamp,
       s.name as state_type,
       (select cast(plain_bytes(b.bytes, b.size) as text) from log.blobs b where b.digest = s.digest) as state_data
  from log.states s
 where s.name in ('pm', 'orchestrator', 'group_status', 'investigation');

-- task_groups
select g.group_id as id,
       g.run_id as session_id,
       g.name,
       g.status,
       g.assigned_to,
       g.revision_count,
       g.last_review_status,
       g.feature_branch,
       g.merge_status,
       g.complexity,
       g.initial_tier,
       replace(g.context_references, '"', '') as context_references,
       g.specializations,
       g.item_count,
       g.security_sensitive,
       g.qa_attempts,
       g.tl_review_attempts,
       g.component_path,
       g.review_iteration,
       g.no_progress_count,
       g.blocking_issues_count,
       g.speckit_task_ids,
       time(g.created_at) as created_at,
       time(g.updated_at) as updated_at
  from log.groups g;

-- token_usage
select c.rowid as id,
       c.run_id as session_id,
       time(c.occurred_at) as timestamp,
       coalesce(c.agent, 'unknown') as agent_type,
       c.agent_id,
       c.input_tokens + c.cache_read_tokens + c.cache_create_tokens + c.output_tokens as tokens_estimated
  from log.charges c
 where c.run_id is not null;

-- skill_outputs
select o.rowid as id,
       o.run_id as session_id,
       time(o.saved_at) as timestamp,
       o.skill as skill_name,
       coalesce(o.document, (select cast(plain_bytes(b.bytes, b.size) as text) from log.blobs b where b.digest = o.digest)) as output_data,
       o.agent as agent_type,
       o.group_id,
       o.iteration
  from log.outputs o;

-- development_plans
select p.rowid as id,
       p.run_id as session_id,
       p.original_prompt,
       p.plan_text,
       coalesce(
         (select json_group_array(json_patch(
                   json_patch(json_object('phase', h.number, 'name', h.name, 'status', h.status), h.extra),
                   json_patch(case h.status when 'pending' then '{}' else json_object('status', h.status) end,
                              json_object('progress_percent', nullif(h.progress_percent, 0), 'started_at', time(h.started_at),
                                          'completed_at', time(h.completed_at)))))
            from (select * from log.phases where run_id = p.run_id order by number) h),
         '[]') as phases,
       p.current_phase,
       p.total_phases,
       time(p.created_at) as created_at,
       time(p.updated_at) as updated_at,
       p.metadata
  from log.plans p;

-- success_criteria
select c.rowid as id,
       c.run_id as session_id,
       c.criterion,
       c.status,
       c.actual,
       c.evidence,
       c.required as required_for_completion,
       time(c.created_at) as created_at,
       time(c.updated_at) as updated_at
  from log.criteria c;

-- context_package_consumers
select c.rowid as id,
       p.number as package_id,
       c.agent as agent_type,
       time(c.consumed_at) as consumed_at,
       c.iteration
  from log.context_consumers c
  join log.packages p on p.id = c.package_id;

-- consumption_scope
select c.scope_id,
       c.run_id as session_id,
       c.group_id,
       c.agent as agent_type,
       c.iteration,
       p.number as package_id,
       time(c.consumed_at) as consumed_at
  from log.context_consumptions c
  join log.packages p on p.id = c.package_id;

-- agent_markers
select m.rowid as id,
       m.agent as agent_type,
       m.required as required_markers,
       m.workflow as workflow_markers
  from log.workflow_markers m;

-- workflow_special_rules
select r.rowid as id,
       r.name as rule_name,
       r.description,
       r.config
  from log.workflow_rules r;

-- schema_version
select 19 as version,
       time(s.applied_at) as applied_at,
       'Decklog ' || s.name as description
  from log.schema_steps s
 where s.version = (select max(version) from log.schema_steps);

-- context_packages
select p.number as id,
       p.run_id as session_id,
       p.group_id,
       p.package_type,
       p.file_path,
       p.producer as producer_agent,
       p.priority,
       p.summary,
       p.size_bytes,
       p.version,
       o.number as supersedes_id,
       p.scope,
       time(p.created_at) as created_at
  from log.packages p
  left join log.packages o on o.id = p.supersedes_id;

-- error_patterns
select e.pattern_hash,
       e.project as project_id,
       e.signature as signature_json,
       e.solution,
       e.confidence,
       e.occurrences,
       e.lang,
       time(e.last_seen_at) as last_seen,
       time(e.created_at) as created_at,
       e.ttl_days
  from log.patterns e;

-- strategies
select s.id as strategy_id,
       s.project as project_id,
       s.topic,
       s.insight,
       s.helpfulness,
       s.lang,
       s.framework,
       time(s.last_seen_at) as last_seen,
       time(s.created_at) as created_at
  from log.strategies s;

-- workflow_transitions
select t.rowid as id,
       t.agent as current_agent,
       t.status as response_status,
       t.next_agent,
       t.action,
       t.include_context,
       t.escalation_check,
       t.model_override,
       t.fallback_agent,
       t.bypass_qa,
       t.max_parallel,
       t.then_action
  from log.workflow_transitions t;
