-- gaia-coder's tables, each in its own database.

-- em_inbox
CREATE TABLE em_inbox (id TEXT PRIMARY KEY, received_at TEXT NOT NULL, from_handle TEXT NOT NULL,
            channel TEXT NOT NULL CHECK (channel IN ('cli', 'tui', 'gh-comment', 'email', 'daily-standup-reply')), severity TEXT NOT NULL CHECK (severity IN ('info', 'question', 'critical')),
            body TEXT NOT NULL, state TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'seen', 'answered', 'escalated', 'closed')), answer TEXT, escalated_to TEXT,
            ack_sent_at TEXT, answered_at TEXT, closed_at TEXT);
CREATE INDEX idx_em_inbox_state ON em_inbox (state);
CREATE INDEX idx_em_inbox_received ON em_inbox (received_at);

-- tasks
CREATE TABLE tasks (id TEXT PRIMARY KEY, priority INTEGER NOT NULL DEFAULT 50,
            state TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'running', 'waiting', 'blocked', 'paused', 'done', 'abandoned')), created_at TEXT NOT NULL, last_heartbeat_at TEXT, stage TEXT,
            current_state_name TEXT, inputs_json TEXT NOT NULL, result_json TEXT, trace_file TEXT,
            cost_usd REAL NOT NULL DEFAULT 0.0, loop_version INTEGER NOT NULL);
CREATE INDEX idx_tasks_state ON tasks (state);
CREATE INDEX idx_tasks_priority ON tasks (priority DESC, created_at);

-- feedback
CREATE TABLE feedback (id TEXT PRIMARY KEY, received_at TEXT NOT NULL, from_handle TEXT NOT NULL,
            channel TEXT NOT NULL, severity TEXT NOT NULL CHECK (severity IN ('low', 'med', 'high', 'critical')),
            body TEXT NOT NULL, context_url TEXT, fix_class TEXT CHECK (fix_class IN ('prompt', 'doc', 'test', 'tool', 'policy', 'architectural', 'state-machine', 'out-of-scope')),
            state TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'triaged', 'in-fix', 'fix-pr-open', 'verified', 'rejected', 'closed')), fix_pr_url TEXT, regression_test_path TEXT,
            root_cause TEXT, success_criterion TEXT, notes_json TEXT NOT NULL DEFAULT '[]');
CREATE INDEX idx_feedback_state ON feedback (state);
CREATE INDEX idx_feedback_fix_class ON feedback (fix_class);

-- spend
CREATE TABLE spend (id TEXT PRIMARY KEY, occurred_at TEXT NOT NULL, task_id TEXT, call_site TEXT NOT NULL,
            model TEXT NOT NULL, input_tokens INTEGER NOT NULL, cache_read_tokens INTEGER NOT NULL DEFAULT 0,
            cache_create_tokens INTEGER NOT NULL DEFAULT 0, output_tokens INTEGER NOT NULL, usd REAL NOT NULL);
CREATE INDEX idx_spend_occurred ON spend (occurred_at);
CREATE INDEX idx_spend_task ON spend (task_id);

-- audit
CREATE TABLE audit (id INTEGER PRIMARY KEY AUTOINCREMENT, occurred_at TEXT NOT NULL, task_id TEXT, stage TEXT,
            state_name TEXT, tool_name TEXT NOT NULL, args_json TEXT NOT NULL, result_json TEXT, duration_ms INTEGER,
            error TEXT, loop_version INTEGER NOT NULL);
CREATE INDEX idx_audit_occurred ON audit (occurred_at);
CREATE INDEX idx_audit_task ON audit (task_id);
CREATE INDEX idx_audit_tool ON audit (tool_name);

-- ci_history
CREATE TABLE ci_history (workflow_name TEXT NOT NULL, branch TEXT NOT NULL, run_id INTEGER NOT NULL,
            started_at TEXT NOT NULL, completed_at TEXT, duration_s INTEGER, conclusion TEXT,
            PRIMARY KEY (workflow_name, branch, run_id));

-- memory
CREATE TABLE memory (id TEXT PRIMARY KEY, topic TEXT NOT NULL CHECK (topic IN ('review_patterns', 'failure_patterns', 'flaky_tests', 'em_preferences', 'adr_decisions', 'tool_usage_heuristics', 'task_outcomes', 'mutation_seeds')), created_at TEXT NOT NULL,
            source_kind TEXT NOT NULL, source_id TEXT, payload_json TEXT NOT NULL, embedding_key TEXT NOT NULL,
            confidence INTEGER NOT NULL DEFAULT 80 CHECK (confidence BETWEEN 0 AND 100), last_recalled_at TEXT,
            recall_count INTEGER NOT NULL DEFAULT 0, superseded_by TEXT);
CREATE INDEX idx_memory_topic ON memory (topic);
CREATE INDEX idx_memory_recalled ON memory (last_recalled_at);
