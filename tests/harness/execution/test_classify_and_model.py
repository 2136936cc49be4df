"""The runtime's classification and the model's agree on every response, though neither knows the other."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from restartpoint.contract import MAX_SAFE_INTEGER
from restartpoint.execution import Circumstances, backoff_ms, classify, not_before_ms
from restartpoint_reference import classify as model
from restartpoint_reference.vocabulary.registers import ModelIdentity
from tests.harness.execution.stage import MODEL, answer
from tests.harness.execution.test_classify import CALL, FINALS, HANDLE, OVERFLOWS, RETRYABLES

VERDICTS = {
    "Cancelled": {model.Verdict.CANCELLED},
    "Overflow": {model.Verdict.OVERFLOW},
    "DeferredAnswer": {model.Verdict.DEFERRED},
    "InvalidHandle": {model.Verdict.INVALID_DEFERRED},
    "Retryable": {model.Verdict.RETRY},
    "Failed": {model.Verdict.EXHAUSTED, model.Verdict.FAILED},
    "PlansTools": {model.Verdict.TOOLS},
    "Finished": {model.Verdict.MAY_FINISH},
    "AbortedUnasked": {model.Verdict.CORRUPT},
}

responses = st.builds(
    answer,
    stopReason=st.sampled_from(["stop", "length", "toolUse", "error", "aborted", "deferred"]),
    content=st.lists(st.sampled_from([CALL, {"type": "text", "text": "x"}]), max_size=2),
    errorMessage=st.one_of(st.sampled_from([*OVERFLOWS, *RETRYABLES, *FINALS]), st.text(max_size=30)),
    usage=st.fixed_dictionaries({"output": st.one_of(st.integers(0, 6), st.floats(0, 6), st.none(), st.booleans())}),
    deferred=st.one_of(st.none(), st.just(HANDLE), st.just({**HANDLE, "id": ""}), st.just({**HANDLE, "api": "b"})),
)


@pytest.mark.covers("RT-3.7-04")
@given(
    response=responses,
    cancelled=st.booleans(),
    attempt=st.integers(1, 3),
    max_attempts=st.integers(1, 3),
    limit=st.integers(0, 6),
)
def test_both_classifications_agree(
    response: Any, cancelled: bool, attempt: int, max_attempts: int, limit: int
) -> None:
    ours = classify(
        response,
        Circumstances(
            cancelled=cancelled,
            attempt=attempt,
            max_attempts=max_attempts,
            intended_output_limit=limit,
            model=MODEL.identity,
        ),
    )
    theirs = model.classify(
        response,
        model.Circumstances(
            cancelled=cancelled,
            attempt=attempt,
            max_attempts=max_attempts,
            intended_output_limit=limit,
            model=ModelIdentity(provider=MODEL.provider, model_id=MODEL.model_id),
        ),
    )

    assert theirs in VERDICTS[type(ours).__name__]


@given(now=st.integers(0, 2**53 - 1), base=st.integers(0, 2**53 - 1), attempt=st.integers(1, 200))
def test_both_deadlines_agree(now: int, base: int, attempt: int) -> None:
    assert not_before_ms(now, base, attempt) == model.not_before(now, base, attempt)


@pytest.mark.covers("ST-0.7-06")
@given(now=st.integers(0, MAX_SAFE_INTEGER), base=st.integers(0, MAX_SAFE_INTEGER), attempt=st.integers(1, 10**30))
def test_waits_and_deadlines_grow_with_the_attempt_and_saturate(now: int, base: int, attempt: int) -> None:
    assert backoff_ms(base, attempt) <= backoff_ms(base, attempt + 1) <= MAX_SAFE_INTEGER
    assert now <= not_before_ms(now, base, attempt) <= not_before_ms(now, base, attempt + 1) <= MAX_SAFE_INTEGER
