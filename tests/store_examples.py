"""One example for each store, for the Python reference. `tests/test_store_examples.py` runs them.

Each has `log`, an open log with the run `tidy` and its task `room-1`.
"""

EXAMPLES = {
    "journal": """
entry = log.journal.append("tidy", "Room 1 is larger than it looks", kind="reasoning", phase="approach")
print(log.journal.find("tidy", kind="reasoning")[0].body)  # Room 1 is larger than it looks
print(log.journal.verify().ok)  # True
""",
    "runs": """
log.runs.start("Paint the fence", run_id="fence")
log.runs.finish("fence", summary="It is green")
print(log.runs.get("fence").status)  # completed
""",
    "groups": """
log.groups.add("tidy", "upstairs", name="Upper floor")
print(log.groups.update("tidy", "upstairs", status="in_progress").status)  # in_progress
""",
    "tasks": """
if claim := log.tasks.claim("tidy", worker="ada"):
    with claim:
        claim.finish("Tidy")
print(log.tasks.get("room-1").state)  # done
""",
    "templates": """
log.templates.save("room", [{"title": "Sweep {{name}}"}])
print(log.templates.use("room", "tidy", values={"name": "room 2"})[0].title)  # Sweep room 2
""",
    "schedules": """
schedule = log.schedules.add("tidy", "daily", "every day 06:00", title="Sweep the hall")
print(schedule.name)  # daily
""",
    "plans": """
log.plans.record("tidy", "Tidy the house", "Rooms, then the hall", ["rooms", "hall"])
print(log.plans.mark("tidy", "1", "completed").name)  # rooms
""",
    "criteria": """
log.criteria.record("tidy", ["No socks on the floor"])
print(log.criteria.meet("tidy", "1", evidence="photo.jpg").status)  # met
""",
    "approvals": """
approval = log.approvals.ask("tidy", "May I throw these away?", by="ada", about="three boxes")
print(log.approvals.decide(approval.id, "granted", by="ana").state)  # granted
""",
    "states": """
log.states.save("tidy", "rooms", {"done": 1})
log.states.save("tidy", "rooms", {"done": 2})
print(log.states.get("tidy", "rooms").version)  # 2
""",
    "artifacts": """
artifact = log.artifacts.add("tidy", "report", "report.txt", content="All tidy")
print(artifact.size)  # 8
""",
    "outputs": """
log.outputs.save("tidy", "lint", {"errors": 0}, agent="ada")
print(log.outputs.find("tidy")[0].document == {"errors": 0})  # True
""",
    "prices": """
log.prices.set("my-model", 1_000_000, 5_000_000)  # microdollars for a million tokens
print(log.prices.quote("my-model", input_tokens=2_000, output_tokens=100))  # 2500
""",
    "budgets": """
log.budgets.set("run", scope_id="tidy", limit_microdollars=5_000_000)
print(log.budgets.burn()[0]["left"])  # 5000000
""",
    "reservations": """
held = log.reservations.reserve(amount_microdollars=80_000, run_id="tidy")
log.ledger.charge("my-model", cost_microdollars=31_000, reservation_id=held.id)
print(log.reservations.settle(held.id).state)  # settled
""",
    "ledger": """
log.ledger.charge("my-model", input_tokens=900, output_tokens=50, cost_microdollars=42_000, run_id="tidy")
print(log.ledger.find("tidy")[0].cost_microdollars)  # 42000
""",
    "memory": """
log.memory.add_topic("rooms", "What rooms taught us")
log.memory.remember("rooms", "Sweep before you mop", run_id="tidy")
print(log.memory.recall("mop the room")[0].body)  # Sweep before you mop
""",
    "patterns": """
log.patterns.record("house", "BlockedDoor", "the door does not open", "Move the boxes first")
print(log.patterns.find("house", min_confidence=0.5)[0].solution)  # Move the boxes first
""",
    "strategies": """
log.strategies.record("house", "methodology", "Start with the smallest room")
print(log.strategies.find("house")[0].insight)  # Start with the smallest room
""",
    "learnings": """
learning = log.learnings.note("room-1", "The lamp is loose")
print(log.learnings.dismiss(learning.id, by="ana").state)  # dismissed
""",
    "context": """
log.context.save("tidy", "research", "plan.md", "tech_lead", "Floor plan", consumers=["developer"])
print(log.context.offer("tidy", "developer")[0].summary)  # Floor plan
""",
    "inbox": """
message = log.inbox.post("ana", "How far are you?", severity="question")
print(log.inbox.answer(message.id, "Half of it").state)  # answered
""",
    "feedback": """
feedback = log.feedback.file("ana", "The hall is still dusty")
print(feedback.state)  # pending
""",
    "trust": """
print(log.trust.show()["tier"])  # 0
print(log.trust.may("edit_file")["allowed"])  # False
""",
    "proofs": """
print(len(log.proofs.find()))  # 0: nothing was signed
""",
    "self_edits": """
stages = ["static", "functional", "arch", "security", "prose", "adversarial", "feedback_binding"]
passed: dict[str, object] = dict.fromkeys(stages, "pass")
log.self_edits.record("#12", "doc", ["README.md"], "a" * 40, "b" * 40, passed, 90, "approved")
print(log.self_edits.find()[0].pr)  # #12
""",
    "workflow": """
decision = log.workflow.route("developer", "READY_FOR_QA")
print(decision["next_agent"])  # qa_expert
""",
    "ci": """
log.ci.record("tests", "main", 41, duration_seconds=120, conclusion="success")
print(log.ci.expected("tests", "main")["median_s"])  # 120.0
""",
    "verdicts": """
print(len(log.verdicts.find("tidy")))  # 0: the conductor records them
""",
    "reviews": """
print(len(log.reviews.find("tidy")))  # 0: `decklog review` records them
""",
    "mends": """
print(len(log.mends.find(open_only=True)))  # 0: `decklog mend` records them
""",
    "gates": """
log.gates.close("my-account", "quota", retry_seconds=60)
print(log.gates.enter("my-account"))  # None: closed
""",
    "effects": """
effect = log.effects.intend("tidy", "mail", "send", key="mail-1", actor="ada")
print(log.effects.settle(effect.id, actor="ada", result={"sent": True}).state)  # done
""",
    "processes": """
command: dict[str, object] = {"argv": ["sleep", "9"]}
log.processes.started("tidy", "p1", command=command, cwd=".", root=".", folder=".", sandbox="none", keeper="k", pid=1)
print(log.processes.ended("p1", "exited", exit_code=0).state)  # exited
""",
    "edits": """
edit = log.edits.record("f" * 40, "house.py", new_blob="a" * 40, session="claude:1", run_id="tidy")
print(log.edits.find(path="house.py")[0].kind)  # tool
""",
    "notices": """
rule = log.notices.add_rule("needs_attention", "command", target=["logger", "-t", "decklog"])
print(log.notices.rules()[0].id == rule.id)  # True
""",
    "overview": """
print(log.overview.run("tidy").status)  # running
print(len(log.overview.waiting()))  # 0
""",
}
