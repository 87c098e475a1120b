"""Memory: lessons, what a search would find and why, and the evidence of a lesson."""

from typing import Any
from urllib.parse import urlencode

from decklog.web.site import PageView, SiteRequest, command

PAGE, HITS = 50, 20


def read(asked: SiteRequest) -> PageView:
    """Load the lessons that a search would find, one lesson with its evidence, or the newest of a topic."""
    query, topic, lesson_id = asked.word("q"), asked.word("topic"), asked.word("lesson")
    log = asked.log
    base: dict[str, Any] = {
        "query": query,
        "topic": topic,
        "hits": None,
        "lesson": None,
        "lessons": [],
        "evidence": [],
        "health": None,
    }
    if lesson_id:
        lesson = log.memory.get(lesson_id)
        evidence = log.memory.evidence(lesson_id, limit=PAGE)
        names = log.overview.names(run_ids=list({one.run_id for one in evidence if one.run_id}))
        base |= {"lesson": lesson, "evidence": evidence, "names": names}
        return _view("Lesson", command("memory", "show", lesson_id), lesson, base, None)
    if query:
        hits = log.memory.peek(query[:400], topic=topic, limit=HITS)
        return _view("Memory", command("memory", "peek", query), hits, base | {"hits": hits}, None)
    lessons = log.memory.find(topic=topic, limit=PAGE, after=asked.word("after"))
    # Topics with the most lessons come first.
    base |= {"lessons": lessons, "topics": sorted(log.memory.topics(), key=lambda one: -one["lessons"])}
    if asked.word("health"):
        base["health"] = log.memory.health()
    return _view("Memory", command("memory", "find", *(("--topic", topic) if topic else ())), lessons, base, lessons.next)


def _view(title: str, said: str, data: Any, shown: dict[str, Any], following: str | None) -> PageView:
    given = {name: shown[name] for name in ("topic",) if shown[name]}
    shown = {"topics": [], **shown, "older": f"/memory?{urlencode({**given, 'after': following})}" if following else None}
    return PageView("memory.html", title, said, data, shown, following, "memory")
