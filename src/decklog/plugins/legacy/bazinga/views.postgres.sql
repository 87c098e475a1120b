-- What readers of a bazinga database expect: its tables, as views of ours, in a schema of their own:
-- set search_path = bazinga, public.

create view sessions as
select r.id as session_id,
       replace(replace(substr(r.started_at, 1, 26), 'T', ' '), '.000000', '') as start_time,
       replace(replace(substr(r.ended_at, 1, 26), 'T', ' '), '.000000', '') as end_time,
       r.mode,
       nullif(r.goal, '') as original_requirements,
       r.status,
       r.branch as initial_branch,
       case when r.metadata = '{}' then null else r.metadata end as metadata,
       replace(replace(substr(r.started_at, 1, 26), 'T', ' '), '.000000', '') as created_at
  from runs r;

create view orchestration_logs as
select e.seq as id,
       e.stream as session_id,
       replace(replace(substr(e.at, 1, 26), 'T', ' '), '.000000', '') as timestamp,
       e.iteration,
       e.agent as agent_type,
       e.agent_id,
       coalesce(e.body, (select convert_from(b.bytes, 'UTF8') from blobs b where b.digest = e.body_digest)) as content,
       e.kind as log_type,
       e.phase as reasoning_phase,
       e.confidence as confidence_level,
       e.refs as references_json,
       e.redacted,
       e.group_id,
       e.subtype as event_subtype,
       coalesce(e.payload, (select convert_from(b.bytes, 'UTF8') from blobs b where b.digest = e.payload_digest)) as event_payload,
       case when substr(e.key, 1, 7) = 'import:' then null else e.key end as idempotency_key
  from entries e
 where e.kind in ('interaction', 'reasoning', 'event')
   and coalesce(e.subtype, '') not in ('imported', 'imported.columns', 'imported.row');

create view state_snapshots as
select row_number() over (partition by s.run_id order by s.updated_at, s.group_id, s.name) as id,
       s.run_id as session_id,
       s.group_id,
       replace(replace(substr(s.updated_at, 1, 26), 'T', ' '), '.000000', '') as timestamp,
       s.name as state_type,
       (select convert_from(b.bytes, 'UTF8') from blobs b where b.digest = s.digest) as state_data
  from states s;

create view task_groups as
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
       replace(replace(substr(g.created_at, 1, 26), 'T', ' '), '.000000', '') as created_at,
       replace(replace(substr(g.updated_at, 1, 26), 'T', ' '), '.000000', '') as updated_at
  from groups g;

create view token_usage as
select row_number() over (partition by c.run_id order by c.occurred_at, c.id) as id,
       c.run_id as session_id,
       replace(replace(substr(c.occurred_at, 1, 26), 'T', ' '), '.000000', '') as timestamp,
       c.agent as agent_type,
       c.agent_id,
       c.input_tokens + c.cache_read_tokens + c.cache_create_tokens + c.output_tokens as tokens_estimated
  from charges c
 where c.run_id is not null;

create view skill_outputs as
select o.number as id,
       o.run_id as session_id,
       replace(replace(substr(o.saved_at, 1, 26), 'T', ' '), '.000000', '') as timestamp,
       o.skill as skill_name,
       coalesce(o.document, (select convert_from(b.bytes, 'UTF8') from blobs b where b.digest = o.digest)) as output_data,
       o.agent as agent_type,
       o.group_id,
       o.iteration
  from outputs o;

create view development_plans as
select s.no as id,
       p.run_id as session_id,
       p.original_prompt,
       p.plan_text,
       coalesce(
         (select json_agg(json_build_object('phase', h.number, 'name', h.name, 'status', h.status,
                                             'progress_percent', h.progress_percent, 'completed_at', h.completed_at) order by h.number)::text
            from phases h
           where h.run_id = p.run_id),
         '[]') as phases,
       p.current_phase,
       p.total_phases,
       replace(replace(substr(p.created_at, 1, 26), 'T', ' '), '.000000', '') as created_at,
       replace(replace(substr(p.updated_at, 1, 26), 'T', ' '), '.000000', '') as updated_at,
       p.metadata
  from plans p
  join streams s on s.name = p.run_id;

create view success_criteria as
select c.number as id,
       c.run_id as session_id,
       c.criterion,
       c.status,
       c.actual,
       c.evidence,
       c.required as required_for_completion,
       replace(replace(substr(c.created_at, 1, 26), 'T', ' '), '.000000', '') as created_at,
       replace(replace(substr(c.updated_at, 1, 26), 'T', ' '), '.000000', '') as updated_at
  from criteria c;

create view context_package_consumers as
select row_number() over (partition by c.run_id order by p.number, c.agent) as id,
       p.number as package_id,
       c.agent as agent_type,
       replace(replace(substr(c.consumed_at, 1, 26), 'T', ' '), '.000000', '') as consumed_at,
       c.iteration
  from context_consumers c
  join public.packages p on p.id = c.package_id;

create view consumption_scope as
select c.scope_id,
       c.run_id as session_id,
       c.group_id,
       c.agent as agent_type,
       c.iteration,
       p.number as package_id,
       replace(replace(substr(c.consumed_at, 1, 26), 'T', ' '), '.000000', '') as consumed_at
  from context_consumptions c
  join public.packages p on p.id = c.package_id;

create view agent_markers as
select row_number() over (order by m.agent) as id,
       m.agent as agent_type,
       m.required as required_markers,
       m.workflow as workflow_markers
  from workflow_markers m;

create view workflow_special_rules as
select row_number() over (order by r.name) as id,
       r.name as rule_name,
       r.description,
       r.config
  from workflow_rules r;

create view schema_version as
select 19 as version,
       replace(replace(substr(s.applied_at, 1, 26), 'T', ' '), '.000000', '') as applied_at,
       'Decklog ' || s.name as description
  from schema_steps s
 where s.version = (select max(version) from schema_steps);

create view context_packages as
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
       replace(replace(substr(p.created_at, 1, 26), 'T', ' '), '.000000', '') as created_at
  from public.packages p
  left join public.packages o on o.id = p.supersedes_id;

create view error_patterns as
select e.pattern_hash,
       e.project as project_id,
       e.signature as signature_json,
       e.solution,
       e.confidence,
       e.occurrences,
       e.lang,
       replace(replace(substr(e.last_seen_at, 1, 26), 'T', ' '), '.000000', '') as last_seen,
       replace(replace(substr(e.created_at, 1, 26), 'T', ' '), '.000000', '') as created_at,
       e.ttl_days
  from public.patterns e;

create view strategies as
select s.id as strategy_id,
       s.project as project_id,
       s.topic,
       s.insight,
       s.helpfulness,
       s.lang,
       s.framework,
       replace(replace(substr(s.last_seen_at, 1, 26), 'T', ' '), '.000000', '') as last_seen,
       replace(replace(substr(s.created_at, 1, 26), 'T', ' '), '.000000', '') as created_at
  from public.strategies s;

create view workflow_transitions as
select row_number() over (order by t.agent, t.status) as id,
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
  from public.workflow_transitions t;
