"""How sessions begin: seeded strands, the canonical id, forks, and imports of old files."""

from collections.abc import Callable

from restartpoint_reference import TRANSITIONS as T
from restartpoint_reference import JsonObject, Namespace
from restartpoint_reference.transitions.copies import CopiedLane, ForkInto, ImportV3
from restartpoint_reference.transitions.facts import SessionId, SetFact
from restartpoint_reference.transitions.queues import IdleWrite
from restartpoint_reference.transitions.session import Configuration
from tests.reference.walk import Walk, assistant, text, uid, usage, user
from tests.reference.walks import runs
from tests.reference.walks.places import CONFIGURED, INPUT, MESSAGE, RESPONSE, USAGE
from tests.reference.walks.runs import CONFIGURATION, OTHER_CONFIGURATION

E1, E2, E3, E4, E5 = (uid(600 + n, n) for n in range(5))
NAME = SetFact(namespace=Namespace.FACT_NAME, key="", value="a fork")
LABEL = SetFact(namespace=Namespace.FACT_LABEL, key=E2, value="here")
CUSTOM = SetFact(namespace=Namespace.FACT_CUSTOM, key="k", value=None)
PARENT = SetFact(namespace=Namespace.FACT_CUSTOM, key="session/parent", value=uid(1, 1))
MAIN = CopiedLane(name="main", leaf_id=E2)


def message(id: str, parent: str | None, content: JsonObject) -> JsonObject:
    return {"id": id, "parentId": parent, "type": "message", "message": content}


def summary(id: str, parent: str | None, kind: JsonObject) -> JsonObject:
    return {"id": id, "parentId": parent, "summary": "short", "fromHook": False, **kind}


BRANCH: tuple[JsonObject, ...] = (message(E1, None, user("hello")), message(E2, E1, assistant(text("hi"))))
TREE: tuple[JsonObject, ...] = (
    *BRANCH,
    {"id": E3, "parentId": E1, "type": "custom", "customType": "note", "data": 1},
    summary(E4, E2, {"type": "compaction", "retainedTail": [], "tokensBefore": 9, "usage": usage(input=4)}),
    summary(E5, E3, {"type": "branch_summary", "fromId": E2, "usage": usage(output=2)}),
)


def write(walk: Walk) -> None:
    walk.take(T["write_idle"], IdleWrite(id=uid(701, 1), message=user("on we go")))


def forked_branch() -> Walk:
    """One branch of a source that no harness was attached to; the destination is then configured as a new one is."""
    walk = Walk()
    walk.take(T["fork_into"], ForkInto(entries=BRANCH, facts=(NAME, LABEL, CUSTOM, PARENT), lanes=(MAIN,)))
    walk.take(T["seed_main"], Configuration(configuration=CONFIGURATION))
    walk.take(T["accept_run"], runs.accepted())
    return walk


def forked_tree() -> Walk:
    """Every branch and every lane, in whatever order the source lists them."""
    walk = Walk()
    lanes = (
        CopiedLane(name="a", configuration=CONFIGURATION, leaf_id=E5),
        CopiedLane(name="main", configuration=OTHER_CONFIGURATION, leaf_id=E4),
        CopiedLane(name="z", configuration=CONFIGURATION, leaf_id=None),
    )
    walk.take(T["fork_into"], ForkInto(entries=TREE, facts=(), lanes=lanes))
    write(walk)
    return walk


def imported() -> Walk:
    """An old file, and the commit that made it a new one."""
    walk = Walk()
    walk.take(T["import_v3"], ImportV3(entries=TREE, facts=(NAME, LABEL), leaf_id=E4, usage_id=uid(700, 1)))
    write(walk)
    return walk


def imported_nothing() -> Walk:
    """An old file without a conversation still gets its row."""
    walk = Walk()
    walk.take(T["import_v3"], ImportV3(entries=(), facts=(), leaf_id=None, usage_id=uid(700, 1)))
    write(walk)
    return walk


def seeded_strands() -> Walk:
    """A store that was empty, its canonical id, and a second strand."""
    walk = Walk()
    walk.take(T["ensure_strand"], Configuration(configuration=CONFIGURATION))
    walk.take(T["ensure_id"], SessionId(id=uid(1, 1)))
    walk.lane = "other"
    walk.take(T["ensure_strand"], Configuration(configuration=OTHER_CONFIGURATION))
    write(walk)
    return walk


SCENARIOS: tuple[Callable[[], Walk], ...] = (
    forked_branch, forked_tree, imported, imported_nothing, seeded_strands,
)  # fmt: skip

DISPLAYED = {place.removeprefix("usage.") for place in USAGE}
COPIED = (
    INPUT
    | RESPONSE
    | {f"{MESSAGE}.usage", f"{MESSAGE}.usage.cost"}
    | {f"entry.{name}" for name in ("customType", "data", "fromHook", "fromId", "summary", "tokensBefore")}
    | {"entry.usage", "entry.usage.cost", "fact.label.value", "fact.name.value"}
)
"""Content that no other place of the session repeats; an import sums the usage that it displays."""

FREE: dict[str, set[str]] = {
    "fork_into": COPIED
    | {f"{MESSAGE}.{place}" for place in DISPLAYED}
    | {f"entry.{place}" for place in DISPLAYED}
    | CONFIGURED
    | {"lane.config.value.activeToolNames.*", "fact.custom.key", "fact.custom.value"},
    "import_v3": COPIED | {"entry.id", "usage.id"},
    "ensure_strand": CONFIGURED | {"lane.config.value.activeToolNames.*"},
    "ensure_id": {"fact.custom.value"},
}

REARRANGED: dict[str, set[str]] = {
    "fork_into": {"fork_into", "create_session"},
    "import_v3": {"import_v3", "fork_into", "create_session"},
    "ensure_strand": {"create_session", "create_lane", "fork_into"},
}
"""Per beginning of a session, what the same writes would be with one of them left out or in another order."""
