"""A sweep finds what it is there for: each seeded fault of a storage, a harness or a scenario shows."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from restartpoint import AgentHarness
from restartpoint.contract import (
    LANE_STATE,
    PENDING_ENTRY,
    AgentMessage,
    CallEffectPending,
    CheckpointPhase,
    LaneState,
    Model,
    ModelRequest,
    RegisterDelete,
    RegisterSet,
    RequestCallbacks,
    Transaction,
    Usage,
    zero_usage,
)
from restartpoint.execution import ClearedToolCall, synthetic_outcome, texts
from restartpoint.runtime.procedures import activation, checkpoint, tools
from restartpoint.runtime.transitions import Current
from restartpoint.runtime.work import Work
from restartpoint.seams import Signal
from restartpoint.storage import Storage
from restartpoint_oracle import ContentDiffers, EffectOutOfOrder
from restartpoint_oracle.crash import SCENARIOS, CrashShows, Scenario, SweepReport, sweep
from restartpoint_oracle.crash.mortal import MortalModels
from restartpoint_oracle.places import JsonlPlace, MemoryPlace
from tests.oracle.crash.doubles import LaggingPlace, LosingPlace, TamperingPlace, new_folders, remembering


def shows(report: SweepReport, words: str) -> None:
    """The sweep found that, and ``verify`` says so."""
    with pytest.raises(CrashShows, match=re.escape(words)):
        report.verify()


# --- storages


@pytest.mark.parametrize("place", [LosingPlace, LaggingPlace])
async def test_a_storage_that_loses_the_last_commit_is_found(
    place: Callable[[Path], LosingPlace | LaggingPlace], tmp_path: Path
) -> None:
    new = new_folders(tmp_path)
    report = await sweep(SCENARIOS["plain"], lambda: place(new()))
    shows(report, "the reopened session is not what had been committed")
    assert {finding.where.split(" ")[0] for finding in report.findings} == {"before", "after"}


async def test_a_storage_that_closes_before_it_wrote_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LaggingPlace, "reopen", JsonlPlace.reopen)
    new = new_folders(tmp_path)
    with pytest.raises(ContentDiffers, match="the closed session reads otherwise than before"):
        await sweep(SCENARIOS["plain"], lambda: LaggingPlace(new()))


async def test_a_storage_that_drops_a_queued_item_is_found() -> None:
    async def drop(storage: Storage) -> None:
        state = await storage.get_register(LANE_STATE, "main")
        if state is not None and state.value.pending_next_run:
            left = LaneState(current_operation_id=None, pending_next_run=state.value.pending_next_run[1:])
            dropped = RegisterDelete(PENDING_ENTRY, state.value.pending_next_run[0])
            await storage.commit(Transaction((RegisterSet(LANE_STATE, "main", left), dropped)))

    report = await sweep(SCENARIOS["next_run_captured"], lambda: TamperingPlace(drop))
    shows(report, "value.pendingNextRun")


# --- harnesses


async def _repeated(batch: tools._Batch, call: CallEffectPending) -> tools._Started:
    source = batch.source(call)
    again = ClearedToolCall(tool_call=source, tool=batch.tools[source.name], args=source.arguments)
    return await tools._dispatch(batch, again, replayed=True)


async def test_a_harness_that_repeats_an_unsafe_call_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "_take_over", _repeated)
    report = await sweep(SCENARIOS["unsafe_tool"], MemoryPlace)
    shows(report, "the process that started the effect is gone")


async def test_a_harness_that_repeats_an_unsafe_call_and_says_that_it_did_not_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def hide(batch: tools._Batch, call: CallEffectPending) -> tools._Kept:
        await (await _repeated(batch, call)).execution.wait()
        interrupted = synthetic_outcome(batch.source(call), texts.INTERRUPTED_CALL)
        return tools._Kept(outcome=interrupted, word="interrupted")

    monkeypatch.setattr(tools, "_take_over", hide)
    report = await sweep(SCENARIOS["unsafe_tool"], MemoryPlace)
    shows(report, "the unsafe tool save started 2 times for call s1, expected 1")


async def test_a_harness_that_interrupts_a_safe_call_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    async def interrupt(batch: tools._Batch, call: CallEffectPending) -> tools._Kept:
        outcome = synthetic_outcome(batch.source(call), texts.INTERRUPTED_CALL)
        return tools._Kept(outcome=outcome, word="interrupted")

    monkeypatch.setattr(tools, "_take_over", interrupt)
    shows(await sweep(SCENARIOS["safe_tool"], MemoryPlace), "the call of load may run again, yet it was answered")


async def test_a_harness_that_reports_no_open_operation_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AgentHarness, "suspended", ())
    shows(await sweep(SCENARIOS["plain"], MemoryPlace), "lane main.open operation: expected None")
    shows(await sweep(SCENARIOS["provider_error"], MemoryPlace), "LaneBusy")


async def test_a_harness_that_forgets_a_hook_after_a_crash_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = checkpoint._run_end_follow_up

    async def ask(work: Work, current: Current, at: CheckpointPhase) -> str | None:
        return None if work.announce._recovery is True else await asked(work, current, at)

    monkeypatch.setattr(checkpoint, "_run_end_follow_up", ask)
    shows(await sweep(SCENARIOS["follow_up"], MemoryPlace), "expected user by append_run_end_follow_up, found nothing")


async def test_a_harness_that_breaks_the_model_during_recovery_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def invented() -> Usage:
        return {**zero_usage(), "output": 1, "totalTokens": 1}

    monkeypatch.setattr(activation, "zero_usage", invented)
    shows(await sweep(SCENARIOS["plain"], MemoryPlace), "the commit is not recover_exhausted_assistant")


async def test_a_harness_that_sends_a_request_twice_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = MortalModels.request

    async def ask_again(
        models: MortalModels, model: Model, request: ModelRequest, callbacks: RequestCallbacks, signal: Signal
    ) -> AgentMessage:
        await asked(models, model, request, callbacks, signal)
        return await asked(models, model, request, callbacks, signal)

    monkeypatch.setattr(MortalModels, "request", ask_again)
    with pytest.raises(EffectOutOfOrder, match="started without a durable intent"):
        await sweep(SCENARIOS["plain"], MemoryPlace)


# --- scenarios


async def test_a_tool_that_tells_how_often_it_ran_shows() -> None:
    shows(await sweep(remembering, MemoryPlace), "content[0].text: expected 'ran 1 times', found 'ran 2 times'")


async def test_a_world_that_outlives_the_run_shows() -> None:
    once = remembering()

    def same_world() -> Scenario:
        return once

    shows(await sweep(same_world, MemoryPlace), "entry 3.message.content[0].text")
