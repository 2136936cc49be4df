"""Who owns a lane: acceptance and its installation, the end and what it leaves, a terminal commit that came first."""

from contextvars import ContextVar
from typing import Any

import anyio.lowlevel
import pytest
from msgspec.structs import replace

from restartpoint import RunCompleted
from restartpoint.contract import (
    LANE_LAST_RESULT,
    LANE_STATE,
    OP_META,
    OP_STATE,
    OP_TOOL_ARGS,
    PENDING_ENTRY,
    BeforeRunResult,
    CancelRequested,
    CheckpointPhase,
    FailureDrainPhase,
    Inbox,
    InsertEntry,
    LaneConfiguration,
    LaneLastResult,
    LaneState,
    MayFinish,
    ModelIdentity,
    Operation,
    OperationError,
    PendingMessage,
    RegisterDelete,
    RegisterSet,
    ResponseProvenance,
    RunEndEvent,
    RunIntent,
    RunState,
    Transaction,
    user_message,
)
from restartpoint.errors import LaneBusy
from restartpoint.providers import ScriptedCall, asks, says
from restartpoint.runtime.settings import Settings
from restartpoint.runtime.transitions import Current, OwnedKeys, finish_failed, finish_run
from restartpoint.session import MAIN_LANE, SessionMutator
from tests.harness.runtime.commits import commit_named, inserted, written
from tests.harness.runtime.doubles import Log, Tool
from tests.harness.runtime.drive import calling, park_at
from tests.harness.runtime.places import Place
from tests.harness.runtime.scenarios import SCENARIOS
from tests.harness.runtime.stage import Stage, stage_of
from tests.harness.session.stage import words


async def enqueue_next_run(stage: Stage, *texts: str) -> list[str]:
    """Queued input for the lane's next run, one commit each, as that call will make them."""
    ids = []
    for text in texts:
        entry_id = stage.ids.next()

        async def job(mutator: SessionMutator, entry_id: str = entry_id, text: str = text) -> None:
            lane = await mutator.get_register(LANE_STATE, MAIN_LANE)
            assert lane is not None
            queued = replace(lane.value, pending_next_run=[*lane.value.pending_next_run, entry_id])
            pending = RegisterSet(PENDING_ENTRY, entry_id, PendingMessage(payload=user_message(text, 1)))
            await mutator.commit(Transaction((pending, RegisterSet(LANE_STATE, MAIN_LANE, queued))))

        await stage.session.mutate(MAIN_LANE, job)
        ids.append(entry_id)
    return ids


# --- acceptance -------------------------------------------------------------------------------------------------


@pytest.mark.covers("RT-3.6-T01", "RT-3.6-18", "AMB-10", "AMB-04")
@pytest.mark.parametrize("hooked", [0, 2])
@pytest.mark.parametrize("queued", [0, 1, 2])
async def test_acceptance_places_the_queue_then_the_prompt_then_what_the_hook_adds(
    queued: int, hooked: int, place: Place, log: Log
) -> None:
    stage = Stage(place, [says("hello")], log=log)
    minted: list[str] = []

    def handler(event: object) -> BeforeRunResult:
        minted.append(stage.ids.next())
        return BeforeRunResult(messages=[user_message(f"hook {index}", 5) for index in range(hooked)])

    async with stage.open() as harness:
        captured = await enqueue_next_run(stage, *(f"queued {index}" for index in range(queued)))
        harness.hooks.on("before_run", handler, id="adds")
        await harness.prompt([user_message("a", 1), user_message("b", 2)])
    accepted = commit_named(stage, "accept_run")
    assert stage.writes[stage.names.index("accept_run")] == [
        *["entry"] * (queued + 2 + hooked), *["delete pending.entry/O"] * queued, "set lane.leaf/main",
        "set op.meta/O", "set op.state/O", "set lane.state/main",
    ]  # fmt: skip
    placed = inserted(accepted)
    assert [entry.id for entry in placed[:queued]] == captured
    assert [write.key for write in accepted.writes if isinstance(write, RegisterDelete)] == captured
    assert [entry.parent_id for entry in placed] == [None, *(entry.id for entry in placed[:-1])]
    fresh = [entry.id for entry in placed[queued:]]
    assert [*minted, *fresh] == sorted([*minted, *fresh])
    assert (await stage.messages())[:-1] == [
        *(f"user: queued {index}" for index in range(queued)), "user: a", "user: b",
        *(f"user: hook {index}" for index in range(hooked)),
    ]  # fmt: skip
    (operation,) = written(stage, OP_META)
    assert operation["intent"]["promptEntryIds"] == fresh[:2]
    assert written(stage, LANE_STATE)[-2:] == [
        {"currentOperationId": operation["operationId"], "pendingNextRun": []},
        {"currentOperationId": None, "pendingNextRun": []},
    ]


@pytest.mark.covers("RT-4.1-10", "INV-22", "INV-14")
async def test_whoever_looks_on_the_lane_line_never_finds_an_open_run_without_an_owner(place: Place, log: Log) -> None:
    stage = Stage(place, [asks(ScriptedCall(name="save")), says("done")], [Tool(name="save", log=log)], log=log)
    found: list[tuple[bool, bool]] = []
    async with stage.open() as harness:

        async def look(mutator: SessionMutator) -> None:
            lane = await mutator.get_register(LANE_STATE, MAIN_LANE)
            assert lane is not None
            found.append((lane.value.current_operation_id is not None, harness._owner.active is not None))

        async with calling(harness.prompt("go")) as run:
            while not run.ended:
                await stage.session.mutate(MAIN_LANE, look)
                await anyio.lowlevel.checkpoint()
        await stage.session.mutate(MAIN_LANE, look)
    assert (True, True) in found
    assert (True, False) not in found
    assert found[-1] == (False, False)


@pytest.mark.covers("RT-4.1-11")
async def test_no_effect_starts_on_the_lane_line(place: Place, log: Log) -> None:
    """A job on the line carries a mark that everything which it would start inherits."""
    on_the_line: ContextVar[bool] = ContextVar("on_the_line", default=False)
    seen: list[tuple[str, bool]] = []

    def note(what: str) -> None:
        seen.append((what, on_the_line.get()))

    async def work(arguments: object, context: object) -> Any:
        note("tool")
        return await Tool(name="x", log=Log()).execute({}, context)  # type: ignore[arg-type]

    stage = Stage(
        place, [asks(ScriptedCall(name="save")), says("done")], [Tool(name="save", log=log, work=work)], log=log
    )
    async with stage.open() as harness:
        for name in ("before_run", "before_request", "transform_context", "before_tool", "after_tool"):
            harness.hooks.on(name, lambda event, name=name: note(name), id=name)
        stage.models.check = lambda request: note("request")
        mutate = stage.session.mutate

        async def marked(lane: str, job: Any) -> Any:
            async def inside(mutator: SessionMutator) -> Any:
                token = on_the_line.set(True)
                try:
                    note("job")
                    return await job(mutator)
                finally:
                    on_the_line.reset(token)

            return await mutate(lane, inside)

        stage.session.mutate = marked  # type: ignore[method-assign]
        await harness.prompt("go")
    assert {what for what, _ in seen} == {
        "job", "before_run", "before_request", "transform_context", "request", "before_tool", "tool", "after_tool",
    }  # fmt: skip
    assert {what for what, inside in seen if inside} == {"job"}


@pytest.mark.covers("RT-3.6-17", "INV-22")
async def test_a_listener_of_the_end_still_finds_the_lane_taken(place: Place, log: Log) -> None:
    stage = Stage(place, [says("one"), says("two")], log=log)
    asked: list[Any] = []
    async with stage.open() as harness:
        remove = harness.events.on(RunEndEvent, lambda event: asked.append(harness.prompt("too early")))
        outcome = await harness.prompt("go")
        remove()
        with pytest.raises(LaneBusy) as busy:
            await asked[0]
        assert (busy.value.operation_id, busy.value.operation_kind) == (outcome.run_id, "run")
        assert isinstance(await harness.prompt("now"), RunCompleted)
    assert await stage.messages() == ["user: go", "assistant: one", "user: now", "assistant: two"]


# --- the end ----------------------------------------------------------------------------------------------------


@pytest.mark.covers("RT-3.4-04", "RT-3.13-07", "AMB-04")
async def test_the_end_frees_the_lane_and_keeps_what_was_queued_for_the_next_run(place: Place, log: Log) -> None:
    stage = stage_of(SCENARIOS["text"], place, log)
    async with stage.open(drive="manual") as harness, calling(harness.prompt("go")) as run:
        await park_at(harness, "commit_run_finish")
        queued = await enqueue_next_run(stage, "later", "and later")
        await harness.run_to_completion()
        await run.result()
        assert [register.key for register in await stage.session.list_registers(PENDING_ENTRY)] == queued
        lane = await stage.session.get_register(LANE_STATE, MAIN_LANE)
    assert lane is not None
    assert lane.value == LaneState(current_operation_id=None, pending_next_run=queued)
    assert stage.writes[-1] == [
        "delete op.meta/O", "delete op.state/O", "set lane.lastResult/main", "set lane.state/main",
    ]  # fmt: skip


def full_state() -> Current:
    """A cancelled run with something in every list that the operation owns, and input for the next run."""
    return Current(
        operation=Operation(
            operation_id="O", lane="main", source_leaf_id=None, started_at=1, intent=RunIntent(prompt_entry_ids=["p"])
        ),
        state=RunState(
            control=CancelRequested(requested_at=2, drained_steer=["ds-2", "ds-1"], drained_follow_up=["df-1"]),
            settings=Settings().captured(),
            phase=CheckpointPhase(continuation=MayFinish(include_final_assistant=True), trigger_entry_id="a"),
            inbox=Inbox(steer=["s-2", "s-1"], follow_up=["f-1"], writes=["w-2", "w-1"]),
            latest_assistant_entry_id="a",
        ),
        lane_state=LaneState(current_operation_id="O", pending_next_run=["next"]),
        leaf_id="a",
    )


OWNED = OwnedKeys(tool_args=("O:step:0", "O:step:1"), preparation=("O:compaction",))
PENDING = ["s-2", "s-1", "f-1", "w-2", "w-1", "ds-2", "ds-1", "df-1"]


@pytest.mark.covers("RT-3.13-06", "AMB-05", "RT-3.13-07")
@pytest.mark.parametrize("outcome", ["completed", "terminated", "failed"])
def test_the_terminal_writes_are_in_one_order_for_every_outcome(outcome: str) -> None:
    current, error = full_state(), OperationError(code="provider_error", message="no")
    if outcome == "failed":
        drain = FailureDrainPhase(error=error, provenance=ResponseProvenance(entry_id="a"))
        state = replace(current.state, phase=drain)
        transaction, result = finish_failed(replace(current, state=state), error, OWNED)
    else:
        transaction, result = finish_run(current, MayFinish(include_final_assistant=outcome == "completed"), OWNED)
    assert [words(write) for write in transaction.writes] == [
        "delete op.meta/O", "delete op.state/O", "delete op.tool_args/O:step:0", "delete op.tool_args/O:step:1",
        "delete op.preparation/O:compaction", *(f"delete pending.entry/{key}" for key in PENDING),
        "set lane.lastResult/main", "set lane.state/main",
    ]  # fmt: skip
    last, lane = transaction.writes[-2:]
    assert isinstance(last, RegisterSet)
    assert isinstance(lane, RegisterSet)
    assert last.value == result
    assert lane.value == LaneState(current_operation_id=None, pending_next_run=["next"])


@pytest.mark.covers("AMB-07")
async def test_an_operation_whose_id_begins_with_this_one_keeps_its_arguments(place: Place, log: Log) -> None:
    stage = stage_of(SCENARIOS["text"], place, log)
    stage.unjudged = "the test itself commits what no transition makes"
    async with stage.open(drive="manual") as harness, calling(harness.prompt("go")) as run:
        await park_at(harness, "commit_run_finish")
        (register,) = await stage.session.list_registers(OP_META)
        own, other = f"{register.key}:step:0", f"{register.key}0:step:0"
        storage = stage.session._storage
        await storage.commit(Transaction(tuple(RegisterSet(OP_TOOL_ARGS, key, {}) for key in (own, other))))
        await harness.run_to_completion()
        await run.result()
        assert [left.key for left in await stage.session.list_registers(OP_TOOL_ARGS)] == [other]


# --- another terminal commit came first -------------------------------------------------------------------------


async def finish_from_outside(stage: Stage) -> LaneLastResult:
    """The terminal transaction of the open run, committed by somebody else on the lane line."""

    async def job(mutator: SessionMutator) -> LaneLastResult:
        ((state,), lane) = await mutator.list_registers(OP_STATE), await mutator.get_register(LANE_STATE, MAIN_LANE)
        assert lane is not None
        leaf = next(
            write.entry.id
            for tx in reversed(stage.court.commits)
            for write in reversed(tx.writes)
            if isinstance(write, InsertEntry)
        )
        result = LaneLastResult(
            operation_id=state.key,
            kind="run",
            outcome="completed",
            leaf_id=leaf,
            final_assistant_entry_id=leaf,
            run_completion="assistant",
        )
        await mutator.commit(
            Transaction(
                (
                    RegisterDelete(OP_META, state.key),
                    RegisterDelete(OP_STATE, state.key),
                    RegisterSet(LANE_LAST_RESULT, MAIN_LANE, result),
                    RegisterSet(LANE_STATE, MAIN_LANE, replace(lane.value, current_operation_id=None)),
                )
            )
        )
        return result

    return await stage.session.mutate(MAIN_LANE, job)


@pytest.mark.covers("RT-3.4-06", "RT-3.4-T89", "RT-4.1-06", "INV-21")
@pytest.mark.parametrize(
    "kind", ["commit_run_finish", "commit_assistant_ready", "commit_tool_intent", "commit_tool_result"]
)
async def test_a_task_whose_run_was_ended_writes_nothing_and_reports_that_end(
    kind: str, place: Place, log: Log
) -> None:
    stage = stage_of(SCENARIOS["one tool"], place, log)
    if kind != "commit_run_finish":
        stage.unjudged = "the run is ended from outside at a place where no transition ends it"
    async with stage.open(drive="manual") as harness:
        async with calling(harness.prompt("go")) as run:
            await park_at(harness, kind, skip=1 if kind == "commit_assistant_ready" else 0)
            result = await finish_from_outside(stage)
            commits = len(stage.court.commits)
            before = [*log.lines]
            await harness.run_to_completion()
            outcome = await run.result()
        assert len(stage.court.commits) == commits
        assert log.lines == before
        assert isinstance(outcome, RunCompleted)
        assert (outcome.run_id, outcome.leaf_id) == (result.operation_id, result.leaf_id)
        assert harness._owner.active is None
        assert log.told[-1] == "run_end completed"
        assert len(written(stage, LANE_LAST_RESULT)) == 1


# --- configuration ----------------------------------------------------------------------------------------------


@pytest.mark.covers("RT-4.3-08", "RT-5.1-26")
async def test_a_provider_that_calls_setters_waits_for_no_line(place: Place, log: Log) -> None:
    stage = Stage(place, [asks(ScriptedCall(name="save")), says("done")], [tool := Tool(name="save", log=log)], log=log)
    async with stage.open() as harness:

        async def work(arguments: object, context: object) -> Any:
            await harness.set_model(ModelIdentity(provider="scripted", model_id="scripted-1"))
            await harness.set_thinking_level("low")
            await harness.set_stream_options({"maxTokens": 3})
            return await Tool(name="x", log=Log()).execute({}, context)  # type: ignore[arg-type]

        tool.work = work
        assert isinstance(await harness.prompt("go"), RunCompleted)
        configured = await harness.get_configuration()
    assert isinstance(configured, LaneConfiguration)
    assert [asked.request.thinking_level for asked in stage.models.requests] == ["off", "low"]
