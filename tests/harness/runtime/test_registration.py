"""Models that are unregistered around the intent of a request; what restore leaves to the types (§5.7, §3.3)."""

import ast
from contextlib import nullcontext
from typing import TypeGuard

import pytest

from restartpoint import HarnessFault, MissingIdentitySuspension, RunFailed
from restartpoint.contract import GenerationReady, ModelRequest
from restartpoint.execution import AbortMarker
from restartpoint.providers import SCRIPTED_MODEL, says
from tests.architecture.rules import imported_modules
from tests.architecture.sources import ROOT, parse, sources
from tests.harness.runtime.commits import phases
from tests.harness.runtime.crash import open_state
from tests.harness.runtime.doubles import Log
from tests.harness.runtime.drive import calling, park_at
from tests.harness.runtime.places import Place
from tests.harness.runtime.stage import Stage


@pytest.mark.covers("RT-5.7-08")
async def test_a_model_that_is_gone_before_the_intent_suspends_before_hook_and_intent(place: Place, log: Log) -> None:
    stage = Stage(place, [says("hello")], log=log)
    async with stage.open(drive="manual") as harness:
        harness.hooks.on("before_request", lambda event: log.note("hook before_request"))
        async with calling(harness.prompt("go")) as run:
            await park_at(harness, "commit_assistant_ready")
            stage.models.unregister(SCRIPTED_MODEL.identity)
            await harness.run_to_completion()
            outcome = await run.result()
        phase = (await open_state(harness)).phase
    assert isinstance(outcome, MissingIdentitySuspension)
    assert isinstance(getattr(phase, "generation", None), GenerationReady)
    assert log.lines == ["seed_main", "accept_run", "start_generation"]


@pytest.mark.covers("RT-5.7-10")
async def test_a_model_that_is_gone_after_the_intent_is_an_ordinary_error_of_the_provider(
    place: Place, log: Log
) -> None:
    stage = Stage(place, [says("never asked")], log=log)
    async with stage.open(drive="manual") as harness, calling(harness.prompt("go")) as run:
        await park_at(harness, "assistant_request")
        stage.models.unregister(SCRIPTED_MODEL.identity)
        await harness.run_to_completion()
        outcome = await run.result()
    pending = phases(stage, "assistant")[-1]["generation"]
    assert isinstance(outcome, RunFailed)
    assert (outcome.error.code, outcome.final_entry_id) == ("provider_error", pending["responseEntryId"])
    assert log.lines == [
        "seed_main", "accept_run", "start_generation", "intend_assistant", "settle_failure", "finish_failed",
    ]  # fmt: skip


@pytest.mark.covers("RT-3.3-12")
def test_restore_decodes_and_validates_no_shape_again() -> None:
    source = parse((ROOT / "harness" / "restartpoint" / "runtime" / "restore.py").read_text())
    assert "restartpoint.contract" in imported_modules(source)
    assert not {name for name in imported_modules(source) if name.startswith(("jsonschema", "pydantic", "json"))}
    named = {alias.name for node in ast.walk(source.tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert not {name for name in named if name.startswith(("decode", "check_", "convert"))}
    of_msgspec = {
        node.attr
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "msgspec"
    }
    assert of_msgspec == {"Struct"}


@pytest.mark.covers("RT-5.7-07")
@pytest.mark.parametrize("abort_first", [True, False])
async def test_a_request_is_sent_with_the_signal_of_the_gate_or_not_at_all(
    abort_first: bool, place: Place, log: Log
) -> None:
    stage = Stage(place, [says("hello")], log=log)
    resolved: list[str] = []
    async with stage.open(drive="manual") as harness, calling(harness.prompt("go")) as run:
        await park_at(harness, "assistant_request")
        active = harness._owner.active
        assert active is not None
        gate, marker = active.work.gate, AbortMarker()
        marker.resolve()
        if abort_first:
            gate.begin_abort(marker)
        else:

            def check(request: ModelRequest) -> None:
                resolved.append("request")
                gate.begin_abort(marker)

            stage.models.check = check
        await harness.run_to_completion()
        with nullcontext() if not abort_first else pytest.raises(HarnessFault):
            await run.result()
    assert [asked.signal for asked in stage.models.requests] == ([] if abort_first else [gate.signal])
    assert resolved == ([] if abort_first else ["request"])


@pytest.mark.covers("RT-5.7-19")
def test_no_helper_of_the_execution_blocks_runs_a_whole_batch() -> None:
    """The blocks take one call and know neither hooks nor storage; the batch is the procedure's own code."""
    blocks = parse((ROOT / "harness" / "restartpoint" / "execution" / "tools.py").read_text())
    known = imported_modules(blocks)
    assert not {name for name in known if name.startswith(("restartpoint.hooks", "restartpoint.runtime"))}
    assert not {name for name in known if name.startswith(("restartpoint.session", "restartpoint.storage"))}
    defined = {node.name for source in sources("restartpoint") for node in ast.walk(source.tree) if is_function(node)}
    assert "execute_tool_call" in defined
    assert not {name for name in defined if "batch" in name and name.startswith(("execute", "_execute"))}


def is_function(node: ast.AST) -> TypeGuard[ast.FunctionDef | ast.AsyncFunctionDef]:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
