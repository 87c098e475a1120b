-- RunStore's tables.
CREATE TABLE runs (id TEXT PRIMARY KEY, goal TEXT NOT NULL, repo_path TEXT NOT NULL, status TEXT NOT NULL, summary TEXT,
        cycle_count INTEGER NOT NULL DEFAULT 0, replan_count INTEGER NOT NULL DEFAULT 0, current_task_id TEXT,
        created_at TEXT NOT NULL, updated_at TEXT NOT NULL);
CREATE TABLE agents (run_id TEXT NOT NULL, role TEXT NOT NULL, session_id TEXT, turns INTEGER NOT NULL DEFAULT 0,
        rotation_count INTEGER NOT NULL DEFAULT 0, last_prompt_path TEXT, last_response_path TEXT, updated_at TEXT NOT NULL,
        PRIMARY KEY (run_id, role));
CREATE TABLE tasks (id TEXT PRIMARY KEY, run_id TEXT NOT NULL, title TEXT NOT NULL, objective TEXT NOT NULL,
        acceptance_criteria_json TEXT NOT NULL, verification_steps_json TEXT NOT NULL, allowed_paths_json TEXT NOT NULL,
        status TEXT NOT NULL, attempt_count INTEGER NOT NULL DEFAULT 0, implementation_summary TEXT, blocker_signature TEXT,
        created_at TEXT NOT NULL, updated_at TEXT NOT NULL);
CREATE TABLE task_attempts (id TEXT PRIMARY KEY, run_id TEXT NOT NULL, task_id TEXT NOT NULL,
        attempt_number INTEGER NOT NULL, status TEXT NOT NULL, summary TEXT NOT NULL, blocker_signature TEXT,
        result_json TEXT NOT NULL, created_at TEXT NOT NULL);
CREATE TABLE events (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, ts TEXT NOT NULL, source TEXT NOT NULL,
        kind TEXT NOT NULL, message TEXT NOT NULL, payload_json TEXT NOT NULL);
CREATE TABLE artifacts (id TEXT PRIMARY KEY, run_id TEXT NOT NULL, role TEXT, kind TEXT NOT NULL, path TEXT NOT NULL,
        created_at TEXT NOT NULL, metadata_json TEXT NOT NULL);
CREATE TABLE checkpoints (id TEXT PRIMARY KEY, run_id TEXT NOT NULL, status TEXT NOT NULL, payload_json TEXT NOT NULL,
        created_at TEXT NOT NULL);
CREATE TABLE approvals (id TEXT PRIMARY KEY, run_id TEXT NOT NULL, source TEXT NOT NULL, verdict TEXT NOT NULL,
        rationale TEXT NOT NULL, payload_json TEXT NOT NULL, created_at TEXT NOT NULL);
