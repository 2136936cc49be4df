"""Payloads of every hook, and hooks whose failures a test can read."""

from typing import Any

from restartpoint.contract import (
    AfterResponse,
    AfterTool,
    AgentMessage,
    BeforeCompaction,
    BeforeNavigation,
    BeforePayload,
    BeforeRequest,
    BeforeResume,
    BeforeRun,
    BeforeRunEnd,
    BeforeTool,
    BranchSummaryPreparation,
    CompactionPreparation,
    CompactionSettings,
    FileOperations,
    Model,
    PreparedRun,
    Resources,
    TransformContext,
    text_block,
    user_message,
)
from restartpoint.hooks import HookFailure, Hooks

__all__ = ["MODEL", "PAYLOADS", "hooks_and_failures", "response"]

MODEL = Model(provider="acme", model_id="m-1", api="acme-api", context_window=1000, max_tokens=64)
FILES = FileOperations(read=[], written=[], edited=[])
WHERE: dict[str, Any] = {"lane": "main", "run_id": "op-1"}


def response(**fields: Any) -> AgentMessage:
    sound: AgentMessage = {"role": "assistant", "content": [text_block("hi")], "stopReason": "stop", "timestamp": 1}
    return {**sound, **fields}


def hooks_and_failures() -> tuple[Hooks, list[HookFailure]]:
    failures: list[HookFailure] = []
    return Hooks(failures.append), failures


class PAYLOADS:
    """One payload of each kind."""

    before_run = BeforeRun(**WHERE, prompt=[user_message("go", 1)], system_prompt="base", resources=Resources())
    before_resume = BeforeResume(**WHERE, prepared=PreparedRun(prompt=[]))
    before_run_end = BeforeRunEnd(**WHERE, messages=[])
    transform_context = TransformContext(**WHERE, messages=[user_message("go", 1)])
    before_request = BeforeRequest(
        **WHERE, model=MODEL, step="assistant", attempt=1, stream_options={"headers": {"a": "1"}, "maxTokens": 5}
    )
    before_payload = BeforePayload(**WHERE, model=MODEL, payload={"n": 0})
    after_response = AfterResponse(**WHERE, message=response())
    before_tool = BeforeTool(**WHERE, tool_call_id="c1", tool_name="echo", args={"n": 0})
    after_tool = AfterTool(
        **WHERE, tool_call_id="c1", tool_name="echo", args={}, content=[text_block("out")], is_error=False
    )
    before_compaction = BeforeCompaction(
        **WHERE,
        reason="manual",
        preparation=CompactionPreparation(
            messages_to_summarize=[],
            turn_prefix_messages=[],
            retained_tail=[],
            is_split_turn=False,
            tokens_before=9,
            file_ops=FILES,
            settings=CompactionSettings(),
        ),
    )
    before_navigation = BeforeNavigation(
        **WHERE, target_id="e1", preparation=BranchSummaryPreparation(messages=[], file_ops=FILES, total_tokens=0)
    )
