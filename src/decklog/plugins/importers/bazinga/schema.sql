-- The newest schema of bazinga-db, version 19.
CREATE TABLE sessions (session_id TEXT PRIMARY KEY, start_time TIMESTAMP DEFAULT CURRENT_TIMESTAMP, end_time TIMESTAMP,
        mode TEXT CHECK (mode IN ('simple', 'parallel')), original_requirements TEXT,
        status TEXT DEFAULT 'active' CHECK (status IN ('active', 'completed', 'failed')),
        initial_branch TEXT DEFAULT 'main', metadata TEXT, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE orchestration_logs (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(session_id) ON DELETE CASCADE, timestamp TIMESTAMP DEFAULT CURRENT_TIMESTAMP, iteration INTEGER, agent_type TEXT NOT NULL,
        agent_id TEXT, content TEXT NOT NULL,
        log_type TEXT DEFAULT 'interaction' CHECK (log_type IN ('interaction', 'reasoning', 'event')),
        reasoning_phase TEXT CHECK (reasoning_phase IS NULL OR reasoning_phase IN ('understanding', 'approach', 'decisions',
          'risks', 'blockers', 'pivot', 'completion')),
        confidence_level TEXT CHECK (confidence_level IS NULL OR confidence_level IN ('high', 'medium', 'low')),
        references_json TEXT, redacted INTEGER DEFAULT 0 CHECK (redacted IN (0, 1)), group_id TEXT, event_subtype TEXT,
        event_payload TEXT, idempotency_key TEXT);
CREATE INDEX idx_logs_session ON orchestration_logs (session_id, timestamp DESC);
CREATE INDEX idx_logs_agent_type ON orchestration_logs (session_id, agent_type);
CREATE INDEX idx_logs_reasoning ON orchestration_logs (session_id, log_type, reasoning_phase) WHERE log_type = 'reasoning';
CREATE INDEX idx_logs_group_reasoning ON orchestration_logs (session_id, group_id, log_type) WHERE log_type = 'reasoning';
CREATE INDEX idx_logs_events ON orchestration_logs (session_id, log_type, event_subtype) WHERE log_type = 'event';
CREATE UNIQUE INDEX idx_logs_idempotency ON orchestration_logs (session_id, event_subtype, group_id, idempotency_key)
        WHERE idempotency_key IS NOT NULL AND log_type = 'event';
CREATE TABLE state_snapshots (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(session_id) ON DELETE CASCADE, group_id TEXT NOT NULL DEFAULT 'global', timestamp TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
        state_type TEXT CHECK (state_type IN ('pm', 'orchestrator', 'group_status', 'investigation')),
        state_data TEXT NOT NULL);
CREATE UNIQUE INDEX idx_state_unique ON state_snapshots (session_id, state_type, group_id);
CREATE INDEX idx_state_session_type_group ON state_snapshots (session_id, state_type, group_id, timestamp DESC);
CREATE TABLE task_groups (id TEXT NOT NULL, session_id TEXT NOT NULL REFERENCES sessions(session_id) ON DELETE CASCADE, name TEXT NOT NULL,
        status TEXT DEFAULT 'pending' CHECK (status IN ('pending', 'in_progress', 'completed', 'failed',
          'approved_pending_merge', 'merging')),
        assigned_to TEXT, revision_count INTEGER DEFAULT 0, last_review_status TEXT, feature_branch TEXT, merge_status TEXT,
        complexity INTEGER CHECK (complexity BETWEEN 1 AND 10),
        initial_tier TEXT DEFAULT 'Developer' CHECK (initial_tier IN ('Developer', 'Senior Software Engineer')),
        context_references TEXT, specializations TEXT, item_count INTEGER DEFAULT 1, security_sensitive INTEGER DEFAULT 0,
        qa_attempts INTEGER DEFAULT 0, tl_review_attempts INTEGER DEFAULT 0, component_path TEXT,
        review_iteration INTEGER DEFAULT 1 CHECK (review_iteration >= 1),
        no_progress_count INTEGER DEFAULT 0 CHECK (no_progress_count >= 0),
        blocking_issues_count INTEGER DEFAULT 0 CHECK (blocking_issues_count >= 0),
        speckit_task_ids TEXT, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (id, session_id));
CREATE INDEX idx_taskgroups_session ON task_groups (session_id, status);
CREATE TABLE token_usage (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(session_id) ON DELETE CASCADE, timestamp TIMESTAMP DEFAULT CURRENT_TIMESTAMP, agent_type TEXT NOT NULL, agent_id TEXT,
        tokens_estimated INTEGER NOT NULL);
CREATE INDEX idx_tokens_session ON token_usage (session_id, agent_type);
CREATE TABLE skill_outputs (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(session_id) ON DELETE CASCADE, timestamp TIMESTAMP DEFAULT CURRENT_TIMESTAMP, skill_name TEXT NOT NULL, output_data TEXT NOT NULL,
        agent_type TEXT, group_id TEXT, iteration INTEGER DEFAULT 1);
CREATE INDEX idx_skill_session ON skill_outputs (session_id, skill_name, timestamp DESC);
CREATE INDEX idx_skill_agent_group ON skill_outputs (session_id, skill_name, agent_type, group_id, iteration);
CREATE UNIQUE INDEX idx_skill_unique_iteration
        ON skill_outputs (session_id, skill_name, agent_type, group_id, iteration);
CREATE INDEX idx_skill_latest ON skill_outputs (session_id, skill_name, agent_type, group_id, iteration DESC);
CREATE TABLE development_plans (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT UNIQUE NOT NULL REFERENCES sessions(session_id)
        ON DELETE CASCADE, original_prompt TEXT NOT NULL, plan_text TEXT NOT NULL, phases TEXT NOT NULL, current_phase INTEGER,
        total_phases INTEGER NOT NULL, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, metadata TEXT);
CREATE INDEX idx_devplans_session ON development_plans (session_id);
CREATE TABLE success_criteria (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(session_id) ON DELETE CASCADE, criterion TEXT NOT NULL,
        status TEXT DEFAULT 'pending' CHECK (status IN ('pending', 'met', 'blocked', 'failed')), actual TEXT, evidence TEXT,
        required_for_completion BOOLEAN DEFAULT 1, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
CREATE UNIQUE INDEX idx_unique_criterion ON success_criteria (session_id, criterion);
CREATE INDEX idx_criteria_session_status ON success_criteria (session_id, status);
CREATE TABLE context_packages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(session_id) ON DELETE CASCADE, group_id TEXT,
        package_type TEXT NOT NULL CHECK (package_type IN ('research', 'failures', 'decisions', 'handoff', 'investigation')),
        file_path TEXT NOT NULL, producer_agent TEXT NOT NULL,
        priority TEXT NOT NULL DEFAULT 'medium' CHECK (priority IN ('low', 'medium', 'high', 'critical')),
        summary TEXT NOT NULL, size_bytes INTEGER, version INTEGER DEFAULT 1,
        supersedes_id INTEGER REFERENCES context_packages(id), scope TEXT DEFAULT 'group' CHECK (scope IN ('group', 'global')),
        created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
CREATE INDEX idx_cp_session ON context_packages (session_id);
CREATE INDEX idx_cp_group ON context_packages (group_id);
CREATE INDEX idx_cp_type ON context_packages (package_type);
CREATE INDEX idx_cp_priority ON context_packages (priority);
CREATE INDEX idx_cp_scope ON context_packages (scope);
CREATE INDEX idx_cp_created ON context_packages (created_at);
CREATE INDEX idx_packages_priority_ranking ON context_packages (session_id, priority, created_at DESC);
CREATE TABLE context_package_consumers (id INTEGER PRIMARY KEY AUTOINCREMENT, package_id INTEGER NOT NULL REFERENCES context_packages(id)
        ON DELETE CASCADE, agent_type TEXT NOT NULL, consumed_at TIMESTAMP, iteration INTEGER DEFAULT 1,
        UNIQUE (package_id, agent_type, iteration));
CREATE INDEX idx_cpc_package ON context_package_consumers (package_id);
CREATE INDEX idx_cpc_agent ON context_package_consumers (agent_type);
CREATE INDEX idx_cpc_pending ON context_package_consumers (consumed_at) WHERE consumed_at IS NULL;
CREATE TABLE error_patterns (pattern_hash TEXT NOT NULL, project_id TEXT NOT NULL, signature_json TEXT NOT NULL,
        solution TEXT NOT NULL, confidence REAL DEFAULT 0.5 CHECK (confidence BETWEEN 0 AND 1),
        occurrences INTEGER DEFAULT 1 CHECK (occurrences >= 1), lang TEXT, last_seen TEXT DEFAULT CURRENT_TIMESTAMP,
        created_at TEXT DEFAULT CURRENT_TIMESTAMP, ttl_days INTEGER DEFAULT 90 CHECK (ttl_days > 0),
        PRIMARY KEY (pattern_hash, project_id));
CREATE INDEX idx_patterns_project ON error_patterns (project_id, lang);
CREATE INDEX idx_patterns_ttl ON error_patterns (last_seen, ttl_days);
CREATE TABLE strategies (strategy_id TEXT PRIMARY KEY, project_id TEXT NOT NULL, topic TEXT NOT NULL,
        insight TEXT NOT NULL, helpfulness INTEGER DEFAULT 0 CHECK (helpfulness >= 0), lang TEXT, framework TEXT,
        last_seen TEXT, created_at TEXT);
CREATE INDEX idx_strategies_project ON strategies (project_id, framework);
CREATE INDEX idx_strategies_topic ON strategies (topic);
CREATE TABLE consumption_scope (scope_id TEXT PRIMARY KEY, session_id TEXT NOT NULL REFERENCES sessions(session_id) ON DELETE CASCADE, group_id TEXT NOT NULL,
        agent_type TEXT NOT NULL CHECK (agent_type IN ('developer', 'qa_expert', 'tech_lead', 'senior_software_engineer',
          'investigator')),
        iteration INTEGER NOT NULL CHECK (iteration >= 0), package_id INTEGER NOT NULL REFERENCES context_packages(id)
        ON DELETE CASCADE, consumed_at TEXT DEFAULT CURRENT_TIMESTAMP);
CREATE INDEX idx_consumption_session ON consumption_scope (session_id, group_id, agent_type);
CREATE UNIQUE INDEX idx_consumption_unique
        ON consumption_scope (session_id, group_id, agent_type, iteration, package_id);
CREATE TABLE workflow_transitions (id INTEGER PRIMARY KEY AUTOINCREMENT, current_agent TEXT NOT NULL, response_status TEXT NOT NULL,
        next_agent TEXT, action TEXT NOT NULL, include_context TEXT, escalation_check INTEGER DEFAULT 0, model_override TEXT,
        fallback_agent TEXT, bypass_qa INTEGER DEFAULT 0, max_parallel INTEGER, then_action TEXT,
        UNIQUE (current_agent, response_status));
CREATE INDEX idx_wt_agent ON workflow_transitions (current_agent);
CREATE TABLE agent_markers (id INTEGER PRIMARY KEY AUTOINCREMENT, agent_type TEXT NOT NULL UNIQUE, required_markers TEXT NOT NULL,
        workflow_markers TEXT);
CREATE TABLE workflow_special_rules (id INTEGER PRIMARY KEY AUTOINCREMENT, rule_name TEXT NOT NULL UNIQUE, description TEXT, config TEXT NOT NULL);
CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, description TEXT);
INSERT INTO schema_version (version, description) VALUES (19, 'written by decklog');
