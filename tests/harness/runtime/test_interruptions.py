"""An abort that meets a parked step: the statement behind it does not run; what is committed stays (§4.2).

Durable abort is not built: once the gate and the barrier have refused, the harness stops instead of reconciling.
"""

import pytest

from restartpoint import AgentHarness, HarnessFault, RunCompleted
from restartpoint.execution import AbortMarker
from restartpoint.providers import ScriptedCall, asks, says
from tests.harness.runtime.doubles import Log, Tool
from tests.harness.runtime.drive import calling, park_at, release_all
from tests.harness.runtime.places import Place
from tests.harness.runtime.scenarios import SCENARIOS
from tests.harness.runtime.stage import Stage, stage_of

HOOKS = ("before_request", "transform_context", "before_tool", "after_tool", "before_run_end")
KINDS = (
    *HOOKS, "assistant_request", "tool_execute", "commit_assistant_ready", "commit_assistant_intent",
    "commit_assistant_settlement", "commit_tool_intent", "commit_tool_result", "commit_run_finish",
)  # fmt: skip


def with_hooks(harness: AgentHarness, log: Log, *names: str) -> None:
    for name in names:
        harness.hooks.on(name, lambda event, name=name: log.note(f"hook {name}"), id=name)  # type: ignore[call-overload]


def one_tool(place: Place, log: Log) -> Stage:
    steps = [asks(ScriptedCall(name="save")), says("done")]
    return Stage(place, steps, [Tool(name="save", log=log)], log=log)


def interrupt(harness: AgentHarness) -> None:
    marker = AbortMarker()
    marker.resolve()
    harness._owner.barrier.interrupt(marker)


@pytest.mark.covers("RT-4.2-13", "RACE-12a", "BP-12", "BP-03")
@pytest.mark.parametrize("kind", KINDS)
async def test_what_follows_an_interrupted_step_does_not_run(kind: str, place: Place, log: Log) -> None:
    stage = one_tool(place, log)
    async with stage.open(drive="manual") as harness:
        with_hooks(harness, log, *HOOKS)
        async with calling(harness.prompt("go")) as run:
            await park_at(harness, kind)
            before = [*log.lines]
            interrupt(harness)
            with pytest.raises(HarnessFault):
                await run.result()
    assert log.lines == before


@pytest.mark.covers("BP-22", "BP-23", "BP-24", "BP-29")
@pytest.mark.parametrize(
    "kind, commit",
    [
        ("commit_assistant_ready", "start_generation"),
        ("commit_assistant_intent", "intend_assistant"),
        ("commit_assistant_settlement", "settle_tool_calls"),
        ("commit_run_finish", "finish_run"),
    ],
)
async def test_a_released_step_makes_its_commit_and_an_interrupted_one_does_not(
    kind: str, commit: str, place: Place, log: Log
) -> None:
    async with one_tool(place, log).open(drive="manual") as harness, calling(harness.prompt("go")):
        parked = await park_at(harness, kind)
        assert commit not in log.lines
        assert await harness.execute_action() == parked
        await release_all(harness)
    assert commit in log.lines
    other = Log()
    async with one_tool(place.another(), other).open(drive="manual") as harness, calling(harness.prompt("go")) as run:
        await park_at(harness, kind)
        interrupt(harness)
        with pytest.raises(HarnessFault):
            await run.result()
    assert other.lines.count(commit) == 0


@pytest.mark.covers("BP-21")
async def test_an_interrupted_follow_up_is_dropped(place: Place, log: Log) -> None:
    stage = stage_of(SCENARIOS["a follow-up at the end"], place, log)
    async with stage.open(drive="manual") as harness, calling(harness.prompt("go")) as run:
        await park_at(harness, "commit_run_end_follow_up")
        interrupt(harness)
        with pytest.raises(HarnessFault):
            await run.result()
    assert "append_run_end_follow_up" not in log.lines


@pytest.mark.covers("AMB-66")
async def test_an_abort_leaves_a_parked_before_run_where_it_is(place: Place, log: Log) -> None:
    stage = stage_of(SCENARIOS["before_run adds"], place, log)
    async with stage.open(drive="manual") as harness, calling(harness.prompt("go")) as run:
        parked = await park_at(harness, "before_run")
        interrupt(harness)
        assert await harness.peek_action() == parked
        await harness.run_to_completion()
        assert isinstance(await run.result(), RunCompleted)


@pytest.mark.covers("AMB-65")
async def test_an_interrupted_payload_hook_is_skipped_without_troubling_the_provider(place: Place, log: Log) -> None:
    stage = stage_of(SCENARIOS["text"], place, log)
    async with stage.open(drive="manual") as harness:
        with_hooks(harness, log, "before_payload")
        async with calling(harness.prompt("go")) as run:
            await park_at(harness, "before_payload")
            interrupt(harness)
            await harness.run_to_completion()
            assert isinstance(await run.result(), RunCompleted)
    assert "hook before_payload" not in log.lines
    assert await stage.messages() == SCENARIOS["text"].messages


@pytest.mark.covers("RT-4.2-20")
async def test_the_gate_holds_up_no_commit(place: Place, log: Log) -> None:
    stage = stage_of(SCENARIOS["text"], place, log)
    async with stage.open(drive="manual") as harness, calling(harness.prompt("go")) as run:
        await park_at(harness, "commit_assistant_settlement")
        active = harness._owner.active
        assert active is not None
        marker = AbortMarker()
        marker.resolve()
        active.work.gate.begin_abort(marker)
        await harness.run_to_completion()
        assert isinstance(await run.result(), RunCompleted)
    assert log.lines[-2:] == ["settle_stop", "finish_run"]


@pytest.mark.covers("RT-5.6-06")
async def test_two_handlers_of_a_hook_share_one_step(place: Place, log: Log) -> None:
    async with one_tool(place, log).open(drive="manual") as harness:
        with_hooks(harness, log, "before_tool")
        harness.hooks.on("before_tool", lambda event: log.note("hook before_tool again"))
        async with calling(harness.prompt("go")):
            seen = await release_all(harness)
    assert [info.kind for info in seen].count("before_tool") == 1
    at = log.lines.index("hook before_tool")
    assert log.lines[at : at + 3] == ["hook before_tool", "hook before_tool again", "intend_tool"]
