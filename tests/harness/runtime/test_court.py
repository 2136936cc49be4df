"""That the tests of this folder can fail: their judge notices what is not in the model."""

import pytest

from restartpoint.contract import (
    LANE_LEAF,
    RegisterSet,
    Transaction,
    TransformContext,
    TransformContextResult,
    user_message,
)
from restartpoint.session import SessionMutator
from restartpoint_oracle import JudgeViolation, RequestDiffers
from tests.harness.runtime.doubles import Log
from tests.harness.runtime.places import Place
from tests.harness.runtime.scenarios import SCENARIOS
from tests.harness.runtime.stage import stage_of


async def test_a_commit_that_no_transition_makes_fails_the_test(place: Place, log: Log) -> None:
    stage = stage_of(SCENARIOS["text"], place, log)

    async def rewind(mutator: SessionMutator) -> None:
        await mutator.commit(Transaction((RegisterSet(LANE_LEAF, "main", None),)))

    async def run() -> None:
        async with stage.open() as harness:
            await harness.prompt("go")
            await stage.session.mutate("main", rewind)

    with pytest.raises(JudgeViolation):
        await run()


async def test_a_request_with_another_context_fails_the_test(place: Place, log: Log) -> None:
    stage = stage_of(SCENARIOS["text"], place, log)

    def add(event: TransformContext) -> TransformContextResult:
        return TransformContextResult(messages=[*event.messages, user_message("psst", 1)])

    async def run() -> None:
        async with stage.open() as harness:
            harness.hooks.on("transform_context", add)
            await harness.prompt("go")

    with pytest.raises(RequestDiffers):
        await run()
