"""Every place that starts an effect: refused when the abort came first, run to its end when the effect did (§4.2)."""

from collections.abc import Callable
from contextlib import nullcontext

import pytest

from restartpoint import AgentHarness, HarnessFault
from restartpoint.contract import JsonObject, ToolContext, ToolResult
from restartpoint.errors import Closed
from restartpoint.execution import AbortMarker, AbortRequested
from restartpoint.hooks import Hooks
from restartpoint.providers import ScriptedCall, asks, says
from restartpoint.runtime.gate import EffectGate
from restartpoint.runtime.owner import ActiveOperation
from tests.harness.runtime.crash import Prefix, next_life, prefixes
from tests.harness.runtime.doubles import Log, Tool
from tests.harness.runtime.drive import calling, park_at
from tests.harness.runtime.places import Place
from tests.harness.runtime.scenarios import SCENARIOS
from tests.harness.runtime.stage import Stage

HOOKS = (
    "before_resume", "before_request", "transform_context", "before_payload", "after_response", "before_tool",
    "after_tool", "before_run_end",
)  # fmt: skip
STARTS = {**{name: f"hook {name}" for name in HOOKS}, "assistant_request": "request", "tool_execute": "tool save"}
"""The step that parks before each place of the architecture's list, and what its double logs."""


def active_of(harness: AgentHarness) -> ActiveOperation:
    active = harness._owner.active
    assert active is not None
    return active


def register(hooks: Hooks, told: Callable[[str], None]) -> None:
    """Two handlers per hook; the second tells that the pipeline went on to its end."""
    for name in HOOKS:
        for line in (f"hook {name}", f"hook {name} again"):

            def handler(event: object, line: str = line) -> None:
                told(line)

            hooks.on(name, handler, id=line)  # type: ignore[call-overload]


async def orphaned(place: Place) -> Prefix:
    scenario = SCENARIOS["one tool"]
    return next(one for one in await prefixes(scenario, place) if one.name == "start_generation")


async def stage_for(kind: str, place: Place, log: Log, tool: Tool) -> Stage:
    """A run that is started anew, or for before_resume one that is resumed."""
    steps = [asks(ScriptedCall(name="save")), says("done")]
    if kind == "before_resume":
        return next_life(await orphaned(place), list(steps), [tool], log=log)
    return Stage(place, steps, [tool], log=log)


@pytest.mark.covers("RT-4.2-22", "RT-4.2-23", "RT-4.2-26", "RACE-11b")
@pytest.mark.parametrize("kind", STARTS)
async def test_an_abort_that_came_first_lets_nothing_start(kind: str, place: Place, log: Log) -> None:
    stage = await stage_for(kind, place, log, Tool(name="save", log=log))
    async with stage.open(drive="manual") as harness:
        register(harness.hooks, log.note)
        async with calling(harness.resume() if kind == "before_resume" else harness.prompt("go")) as run:
            await park_at(harness, kind)
            marker = AbortMarker()
            active_of(harness).work.gate.begin_abort(marker)
            marker.resolve()
            before = [*log.lines]
            await harness.run_to_completion()
            with pytest.raises(HarnessFault):
                await run.result()
    effects = [line for line in log.lines[len(before) :] if line.startswith(("hook", "request", "tool"))]
    assert not any(line.startswith(STARTS[kind]) for line in log.lines)
    assert effects == []


@pytest.mark.covers("RT-4.2-32", "RACE-11a", "RT-4.2-21", "TEST-R1-07")
@pytest.mark.parametrize("kind", STARTS)
async def test_an_effect_that_came_first_runs_to_its_end_with_the_signal_of_the_gate(
    kind: str, place: Place, log: Log
) -> None:
    held: list[EffectGate] = []

    def abort() -> None:
        marker = AbortMarker()
        marker.resolve()
        held[0].begin_abort(marker)
        held[0].signal_abort()

    def told(line: str) -> None:
        log.note(line)
        if line == STARTS[kind]:
            abort()

    async def work(arguments: JsonObject, context: ToolContext) -> ToolResult:
        if kind == "tool_execute":
            abort()
        return ToolResult(content=[])

    tool = Tool(name="save", log=log, work=work)
    stage = await stage_for(kind, place, log, tool)
    async with stage.open(drive="manual") as harness:
        register(harness.hooks, told)
        if kind == "assistant_request":
            stage.models.check = lambda request: told("request")
        async with calling(harness.resume() if kind == "before_resume" else harness.prompt("go")) as run:
            await park_at(harness, kind)
            held.append(active_of(harness).work.gate)
            await harness.run_to_completion()
            with nullcontext() if kind == "before_run_end" else pytest.raises(HarnessFault):
                await run.result()
    if kind in HOOKS:
        assert [line for line in log.lines if line.startswith(STARTS[kind])] == [f"hook {kind}", f"hook {kind} again"]
    if kind == "tool_execute":
        assert [context.signal for context in tool.contexts] == [held[0].signal]
    if kind == "assistant_request":
        assert [request.signal for request in stage.models.requests] == [held[0].signal]
    assert held[0].signal.aborted


@pytest.mark.covers("RT-4.2-26")
@pytest.mark.parametrize("name", ["unknown tool", "refused arguments", "broken preparation of arguments"])
async def test_a_call_that_never_runs_asks_the_gate_nothing(name: str, place: Place, log: Log) -> None:
    scenario = SCENARIOS[name]
    stage = Stage(place, scenario.steps, scenario.tools(log), log=log)
    async with stage.open(drive="manual") as harness, calling(harness.prompt("go")) as run:
        await park_at(harness, "commit_tool_result")
        gate = active_of(harness).work.gate
        marker = AbortMarker()
        marker.resolve()
        gate.begin_abort(marker)
        await harness.execute_action()
        await park_at(harness, "assistant_request")
        with pytest.raises(AbortRequested):
            gate.assert_open()
        await harness.run_to_completion()
        with pytest.raises(HarnessFault):
            await run.result()
    assert "complete_batch" in log.lines


@pytest.mark.covers("RT-4.2-28", "TEST-R1-08")
async def test_a_close_before_before_run_starts_no_handler(place: Place, log: Log) -> None:
    stage = Stage(place, [says("hello")], log=log)
    async with stage.open(drive="manual") as harness:
        harness.hooks.on("before_run", lambda event: log.note("hook before_run"), id="a")
        async with calling(harness.prompt("go")) as run:
            await park_at(harness, "before_run")
            await harness.close()
            with pytest.raises(Closed):
                await run.result()
    assert log.lines == ["seed_main"]


@pytest.mark.covers("RT-4.2-28", "TEST-R1-08", "RT-3.6-15")
async def test_a_close_inside_before_run_accepts_nothing(place: Place, log: Log) -> None:
    stage = Stage(place, [says("hello")], log=log)
    async with stage.open() as harness:

        async def handler(event: object) -> None:
            log.note("hook before_run")
            await harness.close()

        harness.hooks.on("before_run", handler, id="a")
        with pytest.raises(Closed):
            await harness.prompt("go")
    assert log.lines == ["seed_main", "hook before_run"]
