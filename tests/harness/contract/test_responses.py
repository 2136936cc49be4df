"""What may be recorded as a response, and what of a broken one is kept."""

from typing import Any

import pytest

from restartpoint.contract import LONGEST_ERROR, error_text, plain_text, reported_usage, response_objection, zero_usage

SOUND: dict[str, Any] = {"role": "assistant", "content": [], "stopReason": "stop"}


@pytest.mark.parametrize("reason", ["stop", "length", "toolUse", "error", "aborted", "deferred"])
def test_a_response_with_a_settled_stop_reason_is_sound_even_without_usage(reason: str) -> None:
    assert response_objection({**SOUND, "stopReason": reason}) is None


def test_an_objection_names_the_place() -> None:
    call = {"type": "toolCall", "id": "c", "name": "n", "arguments": {}}

    assert response_objection({**SOUND, "content": [call, {**call, "name": ""}]}) == (
        "the tool call at content[1] has no id or no name"
    )
    assert response_objection({**SOUND, "x": {"y": [float("inf")]}}) == (
        "$.x.y[0]: the number is not finite; JSON has no NaN or infinity"
    )


@pytest.mark.parametrize("usage", [None, 3, [], {"input": float("nan")}, {"input": object()}])
def test_usage_that_the_ledger_cannot_hold_is_reported_as_zero(usage: Any) -> None:
    assert reported_usage({**SOUND, "usage": usage}) == zero_usage()


@pytest.mark.parametrize("message", [None, "text", {}, []])
def test_what_is_no_message_reports_no_usage(message: Any) -> None:
    assert reported_usage(message) == zero_usage()


def test_reported_usage_is_kept_as_the_provider_shaped_it() -> None:
    usage = {"input": 3, "reasoning": 2, "cost": {"total": 0.25}}

    assert reported_usage({"usage": usage}) is usage


def test_a_lone_surrogate_is_replaced_and_nothing_else() -> None:
    assert plain_text("a\ud800b\U0001f600é") == "a?b\U0001f600é"
    assert error_text(KeyError("\udfff")) == "KeyError: '\\udfff'"
    assert error_text(ValueError("\udfff")) == "ValueError: ?"
    assert error_text(ValueError()) == "ValueError"


def test_a_group_of_errors_is_told_by_its_members() -> None:
    inner = ExceptionGroup("inner", [ConnectionResetError("connection reset")])

    assert error_text(ExceptionGroup("outer", [ValueError("x"), inner])) == (
        "ValueError: x; ConnectionResetError: connection reset"
    )


def test_a_long_error_is_cut() -> None:
    text = error_text(ValueError("x" * 10_000))

    assert len(text) == LONGEST_ERROR + len(" [...]")
    assert text.startswith("ValueError: xxx")
