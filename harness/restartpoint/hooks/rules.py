"""What each hook accepts as an answer; a violation counts as a throw (§5.6, AMB-81)."""

from __future__ import annotations

from typing import TypeVar

from restartpoint.contract import (
    UNSET,
    AfterResponseResult,
    AfterToolPatch,
    BeforeCompactionResult,
    BeforeNavigationResult,
    BeforePayloadResult,
    BeforeRequestResult,
    BeforeRunEndResult,
    BeforeRunResult,
    BeforeToolDecision,
    TransformContextResult,
    check_json,
    patched_options,
    response_objection,
    role_of,
    stop_reason_of,
)
from restartpoint.errors import HookAnswerRefused

__all__ = [
    "after_response", "after_tool", "before_compaction", "before_navigation", "before_payload", "before_request",
    "before_resume", "before_run", "before_run_end", "before_tool", "transform_context",
]  # fmt: skip

A = TypeVar("A")


def _of(answer: object, expected: type[A]) -> A | None:
    if answer is None or isinstance(answer, expected):
        return answer
    raise HookAnswerRefused(f"the handler returned {type(answer).__name__}; return {expected.__name__} or None")


def _check_messages(messages: object) -> None:
    if not isinstance(messages, list) or not all(isinstance(one, dict) and role_of(one) for one in messages):
        raise HookAnswerRefused("messages must be a list of messages, each with a role")
    check_json(messages, "messages")


def before_run(answer: object) -> BeforeRunResult | None:
    """Messages with roles, a text, JSON."""
    result = _of(answer, BeforeRunResult)
    if result is not None:
        if result.messages is not UNSET:
            _check_messages(result.messages)
        _check_text(result.system_prompt, "system_prompt")
        if result.resume_data is not UNSET:
            check_json(result.resume_data, "resume_data")
    return result


def before_resume(answer: object) -> None:
    """Nothing."""
    if answer is not None:
        raise HookAnswerRefused("before_resume returns nothing")


def before_run_end(answer: object) -> BeforeRunEndResult | None:
    """A text."""
    result = _of(answer, BeforeRunEndResult)
    if result is not None:
        _check_text(result.follow_up, "follow_up")
    return result


def transform_context(answer: object) -> TransformContextResult | None:
    """Messages with roles; they are sent and never stored."""
    result = _of(answer, TransformContextResult)
    if result is not None:
        _check_messages(result.messages)
    return result


def before_request(answer: object) -> BeforeRequestResult | None:
    """A patch that leaves plain JSON."""
    result = _of(answer, BeforeRequestResult)
    if result is not None and result.stream_options is not UNSET:
        check_json(patched_options({}, result.stream_options), "stream_options")
    return result


def before_payload(answer: object) -> BeforePayloadResult | None:
    """Any payload: it is the provider's own and is never stored."""
    return _of(answer, BeforePayloadResult)


def after_response(answer: object, *, aborted: bool) -> AfterResponseResult | None:
    """A settled assistant message, which says aborted only when the signal is set."""
    result = _of(answer, AfterResponseResult)
    if result is None or result.message is UNSET:
        return result
    objection = response_objection(result.message)
    if objection is not None:
        raise HookAnswerRefused(f"the message cannot replace the response: {objection}")
    if stop_reason_of(result.message) == "aborted" and not aborted:
        raise HookAnswerRefused("the message says aborted, but nobody asked for an abort")
    return result


def before_tool(answer: object) -> BeforeToolDecision | None:
    """An argument object, or a block with a reason."""
    result = _of(answer, BeforeToolDecision)
    if result is None:
        return None
    if result.block is not UNSET:
        _check_text(result.block.reason, "block.reason")
    elif result.args is not UNSET:
        if not isinstance(result.args, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise HookAnswerRefused("args must be an object")
        check_json(result.args, "args")
    return result


def after_tool(answer: object) -> AfterToolPatch | None:
    """Content blocks, JSON details, usage that is an object."""
    result = _of(answer, AfterToolPatch)
    if result is None:
        return None
    content: object = result.content
    if content is not UNSET and (
        not isinstance(content, list) or not all(isinstance(block, dict) for block in content)
    ):
        raise HookAnswerRefused("content must be a list of blocks")
    usage: object = result.usage
    if usage is not UNSET and not isinstance(usage, dict):
        raise HookAnswerRefused("usage must be an object")
    check_json(result, "patch")
    return result


def before_compaction(answer: object) -> BeforeCompactionResult | None:
    """A refusal or a compaction, not both."""
    result = _of(answer, BeforeCompactionResult)
    if result is not None and result.compaction is not UNSET:
        if result.decline:
            raise HookAnswerRefused("decline and compaction exclude each other")
        check_json(result.compaction, "compaction")
    return result


def before_navigation(answer: object) -> BeforeNavigationResult | None:
    """A refusal or a summary, not both."""
    result = _of(answer, BeforeNavigationResult)
    if result is not None and result.summary is not UNSET:
        if result.decline:
            raise HookAnswerRefused("decline and summary exclude each other")
        check_json(result.summary, "summary")
    return result


def _check_text(value: object, name: str) -> None:
    if value is UNSET:
        return
    if not isinstance(value, str):
        raise HookAnswerRefused(f"{name} must be text")
    check_json(value, name)
