"""What a bazinga project's programs ask: dashboards and the prompt builder by SQL, agents by the scripts' command lines.

The SQL is written from what is known of each program's pages and sections: it is not a trace of the programs.
"""

S, G = "'bazinga_1'", "'G1'"

# What the dashboard in the browser asks: which tables and columns there are, then page by page.
DASHBOARD: dict[str, str] = {
    "probe: tables": "select name from sqlite_master where type = 'table' and name in ('sessions', 'orchestration_logs',"
    " 'task_groups', 'token_usage', 'skill_outputs', 'state_snapshots') order by name",
    "probe: criteria": "select count(*) from sqlite_master where type = 'table' and name = 'success_criteria'",
    "probe: packages": "select count(*) from sqlite_master where type = 'table' and name = 'context_packages'",
    "probe: plans": "select count(*) from sqlite_master where type = 'table' and name = 'development_plans'",
    "probe: learning": "select count(*) from sqlite_master where type = 'table' and name in ('error_patterns', 'strategies')",
    "probe: columns of logs": "select name from pragma_table_info('orchestration_logs') order by name",
    "probe: columns of groups": "select name from pragma_table_info('task_groups') order by name",
    "probe: columns of sessions": "select name, upper(type), pk from pragma_table_info('sessions') order by name",
    "probe: version": "select max(version) from schema_version",
    "home: counts": "select count(*), sum(status = 'active'), sum(status = 'completed'), sum(status = 'failed') from sessions",
    "home: success rate": "select round(100.0 * sum(status = 'completed') / nullif(sum(status in ('completed', 'failed')), 0), 1)"
    " from sessions",
    "home: tokens": "select coalesce(sum(tokens_estimated), 0) from token_usage",
    "home: active session": "select * from sessions where status = 'active' order by start_time desc limit 1",
    "home: recent sessions": "select session_id, mode, status, start_time, end_time, original_requirements from sessions"
    " order by created_at desc, session_id limit 5",
    "sessions: page": "select * from sessions order by created_at desc, session_id limit 20 offset 0",
    "sessions: by status": "select session_id from sessions where status = 'completed' order by created_at desc",
    "sessions: by date": "select session_id from sessions where start_time >= '2025-11-12 08:00:01'"
    " and start_time < '2025-11-13' order by start_time",
    "sessions: by text": "select session_id from sessions where original_requirements like '%parser%'"
    " or session_id like '%parser%' order by session_id",
    "compare: overview": "select session_id, mode, status, (julianday(end_time) - julianday(start_time)) * 24 from sessions"
    " where session_id in ('bazinga_1', 'bazinga_3') order by session_id",
    "compare: groups": "select session_id, count(*), sum(revision_count), avg(revision_count) from task_groups"
    " where session_id in ('bazinga_1', 'bazinga_3') group by session_id order by session_id",
    "compare: tokens": "select session_id, agent_type, sum(tokens_estimated) from token_usage"
    " where session_id in ('bazinga_1', 'bazinga_3') group by session_id, agent_type order by session_id, agent_type",
    "session: itself": f"select * from sessions where session_id = {S}",
    "workflow: stages": f"select agent_type, count(*), min(timestamp), max(timestamp) from orchestration_logs"
    f" where session_id = {S} group by agent_type order by min(timestamp), min(id)",
    "replay: steps": f"select id, timestamp, agent_type, agent_id, iteration, content, log_type from orchestration_logs"
    f" where session_id = {S} order by timestamp, id",
    "tasks: all": f"select * from task_groups where session_id = {S} order by created_at, id",
    "tasks: counts": f"select status, count(*) from task_groups where session_id = {S} group by status order by status",
    "logs: newest": f"select * from orchestration_logs where session_id = {S} order by timestamp desc, id desc limit 50",
    "logs: by agent and type": f"select id, content from orchestration_logs where session_id = {S} and agent_type = 'developer'"
    " and log_type = 'interaction' order by id",
    "reasoning: all": f"select id, agent_type, group_id, reasoning_phase, confidence_level, references_json, redacted, content"
    f" from orchestration_logs where session_id = {S} and log_type = 'reasoning' order by timestamp, id",
    "reasoning: phases": f"select reasoning_phase, confidence_level, count(*) from orchestration_logs where session_id = {S}"
    " and log_type = 'reasoning' group by 1, 2 order by 1, 2",
    "reasoning: redacted": f"select sum(redacted) from orchestration_logs where session_id = {S} and log_type = 'reasoning'",
    "criteria: all": f"select * from success_criteria where session_id = {S} order by id",
    "criteria: counts": f"select status, count(*), sum(required_for_completion) from success_criteria where session_id = {S}"
    " group by status order by status",
    "tokens: share": f"select agent_type, agent_id, sum(tokens_estimated), count(*) from token_usage where session_id = {S}"
    " group by agent_type, agent_id order by agent_type, agent_id",
    "tokens: over time": f"select strftime('%Y-%m-%d %H:%M', timestamp), sum(tokens_estimated) from token_usage"
    f" where session_id = {S} group by 1 order by 1",
    "tokens: by tier": f"select case when agent_type in ('tech_lead', 'pm') then 'opus' else 'sonnet' end, sum(tokens_estimated)"
    f" from token_usage where session_id = {S} group by 1 order by 1",
    "skills: outputs": f"select * from skill_outputs where session_id = {S} order by timestamp, id",
    "quality: newest output": f"select output_data from skill_outputs where session_id = {S} and skill_name = 'lint'"
    " order by timestamp desc, id desc limit 1",
    "timeline: events": f"select id, timestamp, event_subtype, event_payload, group_id, idempotency_key from orchestration_logs"
    f" where session_id = {S} and log_type = 'event' order by timestamp, id",
    "state: newest": f"select state_type, group_id, timestamp, state_data from state_snapshots where session_id = {S}"
    " order by state_type, group_id",
    "insights: revisions": f"select id, revision_count from task_groups where session_id = {S} and revision_count > 1",
    "analytics: agents": "select agent_type, count(*), count(distinct session_id) from orchestration_logs group by agent_type"
    " order by agent_type",
    "analytics: revisions": "select avg(revision_count), max(revision_count) from task_groups",
    "analytics: days": "select date(start_time), count(*) from sessions group by 1 order by 1",
}

# What the process behind the browser's live view asks every two seconds, with what it saw last.
POLLED: dict[str, str] = {
    "sessions": "select session_id, status from sessions order by created_at desc, session_id limit 100",
    "logs": "select id, session_id, agent_type, content from orchestration_logs where id > ? order by id",
    "groups": "select session_id, id, status from task_groups where updated_at > ? order by updated_at, id",
    "tokens": "select id, session_id, tokens_estimated from token_usage where id > ? order by id",
}


PROMPT_BUILDER: dict[str, str] = {
    "specializations": f"select specializations, component_path from task_groups where session_id = {S} and id = {G}",
    "Relevant Context": f"select id, file_path, summary, priority, package_type from context_packages where session_id = {S}"
    f" and (group_id = {G} or group_id is null) order by case priority when 'critical' then 0 when 'high' then 1"
    " when 'medium' then 2 else 3 end, created_at desc limit 5",
    "Known Error Patterns": "select signature_json, solution, confidence, occurrences from error_patterns"
    " where confidence > 0.7 order by confidence desc, occurrences desc limit 3",
    "reasoning for qa_expert": f"select agent_type, reasoning_phase, content, confidence_level, timestamp from orchestration_logs"
    f" where session_id = {S} and log_type = 'reasoning' and group_id in ({G}, 'global')"
    " and agent_type in ('developer', 'senior_software_engineer') order by timestamp desc, id desc limit 5",
    "reasoning for investigator": f"select agent_type, reasoning_phase, content from orchestration_logs where session_id = {S}"
    f" and log_type = 'reasoning' and group_id in ({G}, 'global') and agent_type in"
    " ('developer', 'senior_software_engineer', 'qa_expert') order by timestamp desc, id desc limit 5",
    "markers": "select required_markers from agent_markers where agent_type = 'developer'",
}

_LOG = (
    "id, session_id, group_id, agent_type, agent_id, iteration, reasoning_phase, confidence_level, content, redacted, timestamp"
)
# What agents call, and what the older system asked its file for the answer. JSON comes as itself or as text, as it gave it.
SCRIPTS: dict[str, str] = {
    "get-session bazinga_1": f"select * from sessions where session_id = {S}",
    "list-sessions 10": "select * from sessions order by created_at desc limit 10",
    "get-task-groups bazinga_1": f"select * from task_groups where session_id = {S} order by created_at",
    "get-task-groups bazinga_1 completed": f"select * from task_groups where session_id = {S} and status = 'completed'",
    "get-success-criteria bazinga_1": f"select * from success_criteria where session_id = {S} order by id",
    "get-development-plan bazinga_1": f"select * from development_plans where session_id = {S}",
    "get-events bazinga_1": f"select id, session_id, timestamp, event_subtype, event_payload from orchestration_logs"
    f" where session_id = {S} and log_type = 'event' order by timestamp desc, id desc limit 50",
    "get-events bazinga_1 scope_change 1": f"select id, session_id, timestamp, event_subtype, event_payload"
    f" from orchestration_logs where session_id = {S} and log_type = 'event' and event_subtype = 'scope_change'"
    " order by timestamp desc, id desc limit 1",
    "get-reasoning bazinga_1": f"select {_LOG} from orchestration_logs where session_id = {S} and log_type = 'reasoning'"
    " order by timestamp desc, id desc limit 50",
    "get-reasoning bazinga_1 --group_id G1 --phase understanding": f"select {_LOG} from orchestration_logs"
    f" where session_id = {S} and log_type = 'reasoning' and group_id = {G} and reasoning_phase = 'understanding'"
    " order by timestamp desc, id desc limit 50",
    "get-skill-output-all bazinga_1 lint": f"select agent_type, group_id, timestamp, output_data from skill_outputs"
    f" where session_id = {S} and skill_name = 'lint' order by timestamp desc, id desc",
    "get-context-packages bazinga_1 G1 qa_expert": "select p.id, package_type, priority, summary, file_path, size_bytes, group_id"
    " from context_packages p join context_package_consumers c on c.package_id = p.id and c.agent_type = 'qa_expert'"
    f" where session_id = {S} and consumed_at is null order by p.id",
    "get-consumption bazinga_1": f"select * from consumption_scope where session_id = {S} order by consumed_at desc",
    "get-error-patterns parser": "select pattern_hash, solution, confidence, occurrences, lang, last_seen from error_patterns"
    " where project_id = 'parser' and confidence >= 0.7 order by confidence desc, occurrences desc limit 5",
    "get-strategies parser": "select * from strategies where project_id = 'parser' order by helpfulness desc, last_seen desc",
}
# The same for calls whose answer is one value: a state, an output, the sums of tokens.
VALUES: dict[str, str] = {
    "get-state bazinga_1 pm": f"select state_data from state_snapshots where session_id = {S} and state_type = 'pm'",
    "get-state bazinga_1 orchestrator": f"select state_data from state_snapshots where session_id = {S}"
    " and state_type = 'orchestrator'",
    "get-skill-output bazinga_1 lint": f"select output_data from skill_outputs where session_id = {S} and skill_name = 'lint'"
    " order by timestamp desc, id desc limit 1",
    "token-summary bazinga_1": f"select json_group_object(k, n) from (select agent_type as k, sum(tokens_estimated) as n"
    f" from token_usage where session_id = {S} group by 1 union all select 'total', sum(tokens_estimated) from token_usage"
    f" where session_id = {S})",
}

T3, T4 = "2025-11-12 09:30:01", "2025-11-13 07:15:09"
# Rows beside those that every file has: more sessions, whose rows come between each other's.
MORE: dict[str, list[dict[str, object]]] = {
    "sessions": [
        {
            "session_id": "bazinga_3",
            "start_time": T3,
            "end_time": "2025-11-12 11:30:01",
            "mode": "parallel",
            "original_requirements": "A parser of dates",
            "status": "failed",
            "initial_branch": "main",
            "created_at": T3,
        },
        {
            "session_id": "bazinga_4",
            "start_time": T4,
            "mode": "simple",
            "status": "active",
            "created_at": T4,
            "initial_branch": "main",
            "original_requirements": "Tidy up",
            "metadata": '{"project_id":  "tidy"}',
        },
    ],
    "orchestration_logs": [
        *(
            {"session_id": session, "timestamp": T3, "agent_type": agent, "content": f"step {step}", "iteration": step}
            for step in range(4)
            for session, agent in (("bazinga_1", "developer"), ("bazinga_3", "qa_expert"), ("bazinga_4", "developer"))
        ),
        *(
            {
                "session_id": "bazinga_1",
                "timestamp": T3,
                "agent_type": agent,
                "content": f"{agent} on {phase}",
                "log_type": "reasoning",
                "reasoning_phase": phase,
                "group_id": "G1",
                "confidence_level": "medium",
            }
            for agent in ("developer", "qa_expert")
            for phase in ("understanding", "decisions", "completion")
        ),
        {
            "session_id": "bazinga_1",
            "timestamp": T4,
            "agent_type": "system",
            "content": "Event: pm_bazinga",
            "log_type": "event",
            "event_subtype": "pm_bazinga",
            "group_id": "global",
            "event_payload": '{"all_criteria_met": true, "completed_groups": ["G1"]}',
        },
    ],
    "task_groups": [
        {"id": "G2", "session_id": "bazinga_1", "name": "Lexer", "status": "in_progress", "created_at": T3, "updated_at": T3},
        {"id": "G1", "session_id": "bazinga_3", "name": "Dates", "revision_count": 5, "created_at": T3, "updated_at": T4},
    ],
    "token_usage": [
        {"session_id": session, "timestamp": T3, "agent_type": agent, "agent_id": f"{agent}_1", "tokens_estimated": tokens}
        for session, agent, tokens in (
            *(("bazinga_1", "developer", 700), ("bazinga_3", "developer", 11), ("bazinga_1", "tech_lead", 90)),
            ("bazinga_4", "pm", 3),
        )
    ],
    "error_patterns": [
        {
            "pattern_hash": "cd" * 32,
            "project_id": "parser",
            "signature_json": '{"error_type": "ValueError"}',
            "solution": "check it first",
            "confidence": 0.9,
            "occurrences": 2,
            "lang": "python",
            "last_seen": T4,
            "created_at": T3,
            "ttl_days": 90,
        }
    ],
}
