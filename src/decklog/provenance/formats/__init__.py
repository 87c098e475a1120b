"""Attribution formats of other tools: Git AI notes, Agent Trace records, and Entire's checkpoints."""
