"""How a run is accepted: the entries, their order, and what is remembered of the prompt (§3.1, §3.6)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from restartpoint_reference import TRANSITIONS as T
from restartpoint_reference import InsertEntry, JsonObject, Namespace, Refusal, State, View, apply
from restartpoint_reference.transitions.acceptance import AcceptRun, NewMessage
from restartpoint_reference.transitions.queues import IdleWrite, QueuedMessage
from tests.reference.requirements.writes import written
from tests.reference.walk import Step, Walk, uid, user
from tests.reference.walks import SCENARIOS, runs

N = Namespace
OLD_LEAF, QUEUED, CALLER, HOOK = uid(80, 1), (uid(81, 1), uid(81, 2)), uid(95, 1), uid(95, 2)


def idle(*queued: str) -> Walk:
    """An idle lane with a leaf and this input for the next run."""
    walk = runs.opened()
    walk.take(T["write_idle"], IdleWrite(id=OLD_LEAF, custom_type="mark"))
    for one in queued:
        walk.take(T["enqueue_next_run"], QueuedMessage(id=one, message=user(one)))
    return walk


def prompt(captured: int, *, caller: bool = True, hook: bool = False) -> AcceptRun:
    return replace(
        runs.accepted(captured=captured),
        prompts=(NewMessage(id=CALLER, message=user("what changed?")),) if caller else (),
        injected=(NewMessage(id=HOOK, message=user("mind the date")),) if hook else (),
    )


def inserted(step: Step) -> list[InsertEntry]:
    return [write for write in step.commit.writes if isinstance(write, InsertEntry)]


@pytest.mark.covers("RT-3.6-T01", "RT-3.6-18", "RT-3.6-02", "AMB-10")
@pytest.mark.parametrize("captured", [0, 1, 2])
@pytest.mark.parametrize("hook", [False, True])
def test_a_run_is_accepted_by_its_entries_in_order_then_its_registers(captured: int, hook: bool) -> None:
    walk = idle(*QUEUED)
    commit = walk.take(T["accept_run"], prompt(captured, hook=hook))
    ids = [*QUEUED[:captured], CALLER, *([HOOK] if hook else [])]
    assert written(commit) == [
        *["entry"] * len(ids), *["-pending.entry"] * captured, "lane.leaf", "op.meta", "op.state", "lane.state"
    ]  # fmt: skip
    entries = [write.entry for write in inserted(walk.steps[-1])]
    assert [entry.id for entry in entries] == ids
    assert [entry.parent_id for entry in entries] == [OLD_LEAF, *ids[:-1]]
    for one in QUEUED[:captured]:
        assert walk.state.entries[one].message == user(one)
    view = View(walk.state, "main")
    assert view.leaf == ids[-1]
    assert view.lane_state.pending_next_run == QUEUED[captured:]
    checkpoint: JsonObject = {
        "kind": "checkpoint",
        "continuation": {"kind": "need_assistant", "overflowRecoveryUsed": False},
        "triggerEntryId": ids[-1],
        "skipInboxOnce": True,
    }
    assert walk.state.value(N.OP_STATE, runs.RUN) == {
        "kind": "run",
        "control": {"status": "running"},
        "settings": runs.SETTINGS.to_json(),
        "phase": checkpoint,
        "inbox": {"steer": [], "followUp": [], "writes": []},
        "latestAssistantEntryId": None,
    }


@pytest.mark.covers("RT-3.1-01", "RT-3.1-06", "RT-3.1-07")
@pytest.mark.parametrize("caller", [False, True])
def test_a_run_remembers_the_leaf_before_it_and_the_prompts_of_its_caller_alone(caller: bool) -> None:
    walk = idle(*QUEUED)
    walk.take(T["accept_run"], prompt(2, caller=caller, hook=True))
    intent: JsonObject = {"kind": "run", "promptEntryIds": [CALLER] if caller else []}
    assert walk.state.value(N.OP_META, runs.RUN) == {
        "operationId": runs.RUN, "lane": "main", "sourceLeafId": OLD_LEAF, "startedAt": 900, "intent": intent
    }  # fmt: skip


@pytest.mark.covers("RT-3.1-02")
def test_what_hooks_leave_with_a_run_is_stored_only_when_they_leave_something() -> None:
    override = "be brief"
    data: JsonObject = {"handler": {"n": 1}}
    walk = idle()
    walk.take(T["accept_run"], replace(prompt(0), system_prompt_override=override, resume_data=data))
    held = walk.state.value(N.OP_META, runs.RUN)
    assert isinstance(held, dict)
    assert held["intent"] == {
        "kind": "run", "promptEntryIds": [CALLER], "systemPromptOverride": override, "resumeData": data
    }  # fmt: skip


@pytest.mark.covers("RT-3.1-08")
def test_a_prompt_of_the_caller_never_waits() -> None:
    for scenario in SCENARIOS:
        for step in scenario().steps:
            if step.commit.name == "accept_run":
                assert "pending.entry" not in written(step.commit)
                meta = View(after(step), step.commit.lane or "").operation.intent.to_json()
                ids = meta["promptEntryIds"]
                assert isinstance(ids, list)
                assert set(ids) <= {write.entry.id for write in inserted(step)}
                assert set(ids).isdisjoint(step.before.keys(N.PENDING_ENTRY))


@dataclass(frozen=True, kw_only=True)
class Life:
    """How often the register of an operation was set and deleted in one walk."""

    sets: int = 0
    deletes: int = 0


def lives() -> Iterator[tuple[str, Life]]:
    """Per walk and operation; an id that a walk uses again after its end is another operation."""
    for scenario in SCENARIOS:
        found: dict[str, Life] = {}
        for step in scenario().steps:
            for write in step.commit.writes:
                element = write.to_json()
                if element.get("namespace") != N.OP_META:
                    continue
                key, life = str(element["key"]), found.get(str(element["key"]), Life())
                if element["op"] == "set" and life.deletes:
                    yield key, life
                    life = Life()
                sets, deletes = life.sets + (element["op"] == "set"), life.deletes + (element["op"] == "delete")
                found[key] = Life(sets=sets, deletes=deletes)
        yield from found.items()


@pytest.mark.covers("RT-3.1-05")
def test_acceptance_data_is_written_once_and_deleted_once() -> None:
    found = [life for _, life in lives()]
    assert {life.sets for life in found} == {1}
    assert {life.deletes for life in found} == {0, 1}


@pytest.mark.covers("RT-3.6-14")
def test_a_prompt_that_appends_nothing_is_refused_and_one_queued_message_is_enough() -> None:
    nothing = prompt(0, caller=False)
    refusal = T["accept_run"](idle().state, "main", nothing)
    assert isinstance(refusal, Refusal)
    assert refusal.guard == "something_is_appended"
    walk = idle(*QUEUED[:1])
    walk.take(T["accept_run"], prompt(1, caller=False))
    assert View(walk.state, "main").leaf == QUEUED[0]


def after(step: Step) -> State:
    applied = apply(step.before, step.commit.writes, timestamp=1)
    assert isinstance(applied, tuple)
    return applied[0]
