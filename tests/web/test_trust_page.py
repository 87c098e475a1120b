"""The trust page: a matrix of autonomy levels and permissions that agrees with the data of the levels."""

import json
import re
from importlib.resources import files

from decklog import Decklog
from decklog.web.pages.others import ASKS, LEVELS, NO, PERMISSIONS, YES, matrix
from tests.web.client import PASSWORD, Browser

DATA = json.loads((files("decklog.stores.approvals.trust") / "tiers.json").read_text())


def test_every_action_of_every_level_is_in_exactly_one_line() -> None:
    listed = [action for actions in PERMISSIONS.values() for action in actions]
    assert sorted(listed) == sorted(DATA["actions"])
    assert len(DATA["tiers"]) == len(LEVELS)


def test_all_actions_of_a_line_are_permitted_together(log: Decklog) -> None:
    for words, actions in PERMISSIONS.items():
        rules = [DATA["actions"][action] for action in actions]
        assert all(rule == rules[0] for rule in rules), words
    _, rows = matrix(log)
    for row in rows:
        rule = DATA["actions"][row.actions[0]]
        from_level = len(LEVELS) if rule["tier"] is None else rule["tier"]
        permitted = ASKS if rule.get("needs_approval") else YES
        assert row.cells == tuple(permitted if level >= from_level else NO for level in LEVELS), row.words


def test_the_level_in_force_is_marked(log: Decklog, browser: Browser) -> None:
    text = browser.get("/trust").text
    assert "No owner is registered. Agents are at level 0" in text
    log.trust.bind("ana", "cli", password=PASSWORD)
    text = browser.get("/trust").text
    assert "ana is the owner. Agents are at level 0, Read-only observer." in text
    assert re.findall(r'<th scope="col" class="in-force" aria-current="true"><span class="level">(\d)', text) == ["0"]
    assert text.count(" in-force") == len(PERMISSIONS)
