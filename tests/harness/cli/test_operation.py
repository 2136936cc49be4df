"""What is said of an open operation: phase, reserved ids, and the next steps of resume()."""

from typing import TypeAlias

import pytest

from restartpoint.cli.operation import standing_of
from restartpoint.contract import OP_STATE, OperationState

Wire: TypeAlias = dict[str, object]

CONFIGURATION: Wire = {"model": {"provider": "p", "modelId": "m"}, "thinkingLevel": "off", "activeToolNames": []}
POLICY: Wire = {"maxAttempts": 2, "baseDelayMs": 1}
CHECKPOINT: Wire = {
    "kind": "checkpoint",
    "continuation": {"kind": "need_assistant", "overflowRecoveryUsed": False},
    "triggerEntryId": "e1",
}
GENERATION_CONTEXT: Wire = {
    "stepId": "s1",
    "triggerEntryId": "e1",
    "configuration": CONFIGURATION,
    "streamOptions": {},
    "retryPolicy": POLICY,
    "overflowRecoveryUsed": False,
}
SUMMARY_CONTEXT: Wire = {
    "taskId": "t1",
    "resultEntryId": "r1",
    "kind": "compaction",
    "configuration": CONFIGURATION,
    "streamOptions": {},
    "retryPolicy": POLICY,
}
DEFERRED: Wire = {"stepId": "s1", "sourceEntryId": "e1", "configuration": CONFIGURATION, "streamOptions": {}}
READY: Wire = {"status": "ready", "context": SUMMARY_CONTEXT, "nextAttempt": 1}
CANCELLED: Wire = {"status": "cancel_requested", "requestedAt": 1, "drainedSteer": [], "drainedFollowUp": []}


def pending(attempt: int) -> Wire:
    return {
        "status": "effect_pending",
        "context": GENERATION_CONTEXT,
        "attempt": attempt,
        "responseEntryId": "n1",
        "usageId": "u1",
        "intendedOutputLimit": 1,
        "contextWindow": 1,
    }


def batch(*calls: Wire) -> Wire:
    listed = {"assistantEntryId": "e1", "configuration": CONFIGURATION, "turnId": "s1", "calls": list(calls)}
    return {"kind": "tools", "batch": listed}


def call(index: int, status: str, **more: object) -> Wire:
    return {"status": status, "sourceIndex": index, "resultEntryId": f"r{index}", **more}


def run(phase: Wire, control: Wire | None = None) -> OperationState:
    state: Wire = {
        "kind": "run",
        "control": control or {"status": "running"},
        "settings": {
            "compaction": {"enabled": False, "reserveTokens": 1, "keepRecentTokens": 1},
            "steeringMode": "all",
            "followUpMode": "all",
            "toolExecution": "parallel",
        },
        "phase": phase,
        "inbox": {"steer": [], "followUp": [], "writes": []},
        "latestAssistantEntryId": None,
    }
    return OP_STATE.convert(state)


def structural(decision: Wire) -> OperationState:
    state = {"kind": "compaction", "control": {"status": "running"}, "structural": {"taskId": "t1", **decision}}
    return OP_STATE.convert(state)


def navigation(**fields: object) -> OperationState:
    return OP_STATE.convert({"kind": "navigation", "control": {"status": "running"}, "targetId": "e1", **fields})


GENERATING: Wire = {"status": "generating"}
SUMMARY_PENDING: Wire = {"status": "effect_pending", "context": SUMMARY_CONTEXT, "attempt": 1, "usageIds": []}


@pytest.mark.parametrize(
    "state, phase, reserved, step",
    [
        (run(CHECKPOINT), "an answer of the model is owed", [], "ask the model"),
        (
            run({**CHECKPOINT, "continuation": {"kind": "may_finish", "includeFinalAssistant": True}}),
            "nothing is owed",
            [],
            "finish the run",
        ),
        (
            run({"kind": "assistant", "generation": {**READY, "context": GENERATION_CONTEXT}}),
            "about to ask the model, attempt 1 of 2",
            [],
            "ask the model",
        ),
        (run({"kind": "assistant", "generation": pending(1)}), "unknown", ["n1", "u1"], "start attempt 2 of 2"),
        (run({"kind": "assistant", "generation": pending(2)}), "unknown", ["n1", "u1"], "end the run as failed"),
        (
            run(
                {
                    "kind": "assistant",
                    "generation": {
                        "status": "retry_wait",
                        "context": GENERATION_CONTEXT,
                        "nextAttempt": 2,
                        "notBefore": 5,
                        "errorMessage": "busy",
                    },
                }
            ),
            "waiting until 5 ms for attempt 2 of 2: busy",
            [],
            "then start attempt 2",
        ),
        (run(batch(call(0, "planned"))), "write is planned", ["r0"], "run write"),
        (
            run(batch(call(0, "effect_pending", replay="never"))),
            "write was started and must not be repeated",
            ["r0"],
            "write was interrupted, without running it again",
        ),
        (
            run(batch(call(0, "completed", terminate=False), call(1, "effect_pending", replay="safe"))),
            "1 of 2 results recorded: write is done; read was started and may be repeated",
            ["r1"],
            "run read again with the recorded arguments",
        ),
        (run({"kind": "deferred", "deferred": {**DEFERRED, "status": "suspended", "poll": 1}}), "1 poll", [], "fetch"),
        (
            run(
                {
                    "kind": "deferred",
                    "deferred": {
                        **DEFERRED,
                        "status": "effect_pending",
                        "poll": 2,
                        "responseEntryId": "n1",
                        "usageId": "u1",
                    },
                }
            ),
            "poll 2",
            ["n1", "u1"],
            "under new ids",
        ),
        (
            run(
                {
                    "kind": "failure_drain",
                    "error": {"code": "x", "message": "no quota"},
                    "provenance": {"kind": "response", "entryId": "e1"},
                }
            ),
            "failed: no quota",
            [],
            "end the run as failed",
        ),
        (
            run(
                {
                    "kind": "compaction",
                    "reason": "threshold",
                    "structural": {"taskId": "t1", "status": "deciding"},
                    "resumeAfter": CHECKPOINT,
                }
            ),
            "deciding about a compaction (threshold)",
            [],
            "decision hooks",
        ),
        (structural({**GENERATING, "generation": READY}), "about to summarize", ["r1"], "ask the model"),
        (structural({**GENERATING, "generation": SUMMARY_PENDING}), "unknown outcome", ["r1"], "another attempt"),
        (
            structural({**GENERATING, "generation": {**SUMMARY_PENDING, "request": {"index": 0, "usageId": "u1"}}}),
            "unknown outcome",
            ["r1", "u1"],
            "another attempt",
        ),
        (navigation(summarize=False, phase={"kind": "ready_to_commit"}), "ready to move the leaf", [], "move the leaf"),
        (
            navigation(summarize=True, phase={"kind": "summary", "structural": {"taskId": "t1", "status": "deciding"}}),
            "summary of the branch",
            [],
            "decision hooks",
        ),
        (run(CHECKPOINT, CANCELLED), "cancelled while at a checkpoint", [], "end the operation as aborted"),
    ],
)
def test_an_open_operation_is_told_in_words(state: OperationState, phase: str, reserved: list[str], step: str) -> None:
    standing = standing_of(state, {0: "write", 1: "read"})
    assert phase in standing.phase
    assert [each.id for each in standing.reserved] == reserved
    assert any(step in each for each in standing.resume)
