"""The vocabulary accepts exactly the specified shapes, and says where and why it refuses a value."""

import pytest

from restartpoint_reference import UNSET, Json, JsonObject, Namespace, Observed, Refused, UsageRow, differences, same
from restartpoint_reference.shapes import Record, read_json
from restartpoint_reference.vocabulary.entries import Entry
from restartpoint_reference.vocabulary.registers import (
    BranchPreparation,
    CompactionPreparation,
    LaneConfiguration,
    LaneLastResult,
    LaneState,
    Operation,
    PendingCustom,
    PendingMessage,
)
from restartpoint_reference.vocabulary.states import CompactionState, NavigationState, RunState
from tests.reference.walk import assistant, result, usage, user

CONFIGURATION: JsonObject = {
    "model": {"provider": "p", "modelId": "m"}, "thinkingLevel": "off", "activeToolNames": ["a"],
}  # fmt: skip
POLICY: JsonObject = {"maxAttempts": 3, "baseDelayMs": 10}
RUNNING: JsonObject = {"status": "running"}
CANCELLED: JsonObject = {
    "status": "cancel_requested", "requestedAt": 1, "drainedSteer": ["x"], "drainedFollowUp": [],
}  # fmt: skip
CHECKPOINT: JsonObject = {
    "kind": "checkpoint",
    "continuation": {"kind": "need_assistant", "overflowRecoveryUsed": True},
    "triggerEntryId": "e",
    "thresholdCheckedTriggerEntryId": "e",
    "skipInboxOnce": True,
}
CONTEXT: JsonObject = {
    "stepId": "s", "triggerEntryId": "e", "configuration": CONFIGURATION, "streamOptions": {"any": [1, None]},
    "retryPolicy": POLICY, "overflowRecoveryUsed": False,
}  # fmt: skip
SUMMARY: JsonObject = {
    "taskId": "t", "resultEntryId": "r", "kind": "compaction", "configuration": CONFIGURATION, "streamOptions": {},
    "retryPolicy": POLICY, "reason": "overflow",
}  # fmt: skip
DECIDING: JsonObject = {"taskId": "t", "status": "deciding"}
ERROR: JsonObject = {"code": "provider_error", "message": "no", "details": None}


def generating(**generation: Json) -> JsonObject:
    return {"taskId": "t", "status": "generating", "generation": {"context": SUMMARY, **generation}}


def run(phase: JsonObject, control: JsonObject = RUNNING) -> JsonObject:
    return {
        "kind": "run",
        "control": control,
        "settings": {
            "compaction": {"enabled": True, "reserveTokens": 1, "keepRecentTokens": 0},
            "steeringMode": "all",
            "followUpMode": "one-at-a-time",
            "toolExecution": "parallel",
        },
        "phase": phase,
        "inbox": {"steer": ["a"], "followUp": [], "writes": ["b"]},
        "latestAssistantEntryId": None,
    }


def generation(**fields: Json) -> JsonObject:
    return run({"kind": "assistant", "generation": {"context": CONTEXT, **fields}})


def deferred(**fields: Json) -> JsonObject:
    polled: JsonObject = {
        "stepId": "s", "sourceEntryId": "e", "poll": 0, "configuration": CONFIGURATION, "streamOptions": {},
    }  # fmt: skip
    return run({"kind": "deferred", "deferred": {**polled, **fields}})


CALLS: list[Json] = [
    {"status": "planned", "sourceIndex": 0, "resultEntryId": "a"},
    {"status": "effect_pending", "sourceIndex": 1, "resultEntryId": "b", "replay": "never"},
    {"status": "completed", "sourceIndex": 3, "resultEntryId": "c", "terminate": False},
]
FAILURE: JsonObject = {"kind": "failure_drain", "error": ERROR}
RUNS: list[JsonObject] = [
    run(CHECKPOINT, CANCELLED),
    run({
        "kind": "checkpoint", "triggerEntryId": "e",
        "continuation": {"kind": "may_finish", "includeFinalAssistant": False},
    }),
    generation(status="ready", nextAttempt=1),
    generation(
        status="effect_pending", attempt=1, responseEntryId="r", usageId="u", intendedOutputLimit=9, contextWindow=99
    ),
    generation(status="retry_wait", nextAttempt=2, notBefore=5, errorMessage="busy"),
    run({
        "kind": "tools",
        "batch": {"assistantEntryId": "e", "configuration": CONFIGURATION, "turnId": "s", "calls": CALLS},
    }),
    run({"kind": "compaction", "reason": "threshold", "structural": DECIDING, "resumeAfter": CHECKPOINT}),
    deferred(status="suspended"),
    deferred(status="effect_pending", responseEntryId="r", usageId="u"),
    run({**FAILURE, "provenance": {"kind": "response", "entryId": "e"}}),
    run({**FAILURE, "provenance": {"kind": "structural", "taskId": "t"}}),
]  # fmt: skip
COMPACTING: JsonObject = {"kind": "compaction", "control": RUNNING}
SOME_STEERING: JsonObject = {
    "compaction": {"enabled": True, "reserveTokens": 1, "keepRecentTokens": 0},
    "steeringMode": "some",
    "followUpMode": "all",
    "toolExecution": "parallel",
}
NUMBERED: JsonObject = {"steer": [1], "followUp": [], "writes": []}
STRUCTURAL: list[JsonObject] = [
    DECIDING,
    generating(status="ready", nextAttempt=1),
    generating(status="effect_pending", attempt=1, usageIds=[]),
    generating(status="effect_pending", attempt=1, request={"index": 1, "usageId": "u"}, usageIds=["v"]),
    generating(status="retry_wait", nextAttempt=2, notBefore=1, errorMessage="busy"),
]
NAVIGATION: JsonObject = {"kind": "navigation", "control": RUNNING, "targetId": "e", "label": "here"}
OPERATION: JsonObject = {"operationId": "o", "lane": "main", "sourceLeafId": None, "startedAt": 1}
LAST: JsonObject = {"operationId": "o", "kind": "run", "leafId": "e"}
FILES: JsonObject = {"read": ["a"], "written": [], "edited": []}

SHAPES: list[tuple[type[Record], JsonObject]] = [
    *((RunState, value) for value in RUNS),
    *((CompactionState, {**COMPACTING, "structural": value}) for value in STRUCTURAL),
    (NavigationState, {**NAVIGATION, "summarize": False, "phase": {"kind": "ready_to_commit"}}),
    (NavigationState, {**NAVIGATION, "summarize": True, "customInstructions": "short",
                       "phase": {"kind": "summary", "structural": DECIDING}}),
    (Operation, {**OPERATION, "intent": {"kind": "run", "promptEntryIds": ["e"], "systemPromptOverride": "be brief",
                                         "resumeData": {"hook": 1}}}),
    (Operation, {**OPERATION, "intent": {"kind": "compaction"}}),
    (Operation, {**OPERATION, "intent": {"kind": "navigation", "targetId": None, "summarize": False}}),
    (LaneLastResult, {**LAST, "outcome": "completed", "runCompletion": "assistant", "finalAssistantEntryId": "e"}),
    (LaneLastResult, {**LAST, "outcome": "failed", "error": ERROR}),
    (LaneLastResult, {**LAST, "kind": "navigation", "outcome": "declined"}),
    (LaneState, {"currentOperationId": None, "pendingNextRun": []}),
    (LaneConfiguration, CONFIGURATION),
    (PendingMessage, {"type": "message", "payload": user("hi")}),
    (PendingCustom, {"type": "custom", "customType": "note"}),
    (PendingCustom, {"type": "custom", "customType": "note", "payload": None}),
    (CompactionPreparation, {
        "kind": "compaction", "messagesToSummarize": [], "turnPrefixMessages": [user("a")], "retainedTail": [],
        "isSplitTurn": False, "tokensBefore": 9, "previousSummary": "s", "fileOps": FILES,
        "settings": {"enabled": False, "reserveTokens": 0, "keepRecentTokens": 0},
    }),
    (BranchPreparation, {"kind": "branch_summary", "messages": [], "fileOps": FILES, "totalTokens": 1}),
    (UsageRow, {"id": "u", "seq": 4, "adjustment": False, "usage": usage()}),
    (UsageRow, {"id": "u", "seq": 4, "entryId": "e", "adjustment": True, "usage": usage(input=1), "details": None}),
]  # fmt: skip


@pytest.mark.parametrize("record, value", SHAPES)
def test_a_specified_shape_is_read_and_written_back_unchanged(record: type[Record], value: JsonObject) -> None:
    assert same(record.from_json(value).to_json(), value)


@pytest.mark.parametrize("record, value", SHAPES)
def test_a_missing_required_key_and_an_unknown_key_are_refused_by_name(record: type[Record], value: JsonObject) -> None:
    with pytest.raises(Refused) as unknown:
        record.from_json({**value, "surplus": 1})
    assert unknown.value.path == "surplus"
    required = [key for key in value if _is_refused(record, {name: value[name] for name in value if name != key})]
    optional = {"label", "customInstructions", "runCompletion", "finalAssistantEntryId", "payload", "entryId",
                "previousSummary", "details"}  # fmt: skip
    assert set(value) - set(required) <= optional


def _is_refused(record: type[Record], value: JsonObject) -> bool:
    try:
        record.from_json(value)
    except Refused:
        return True
    return False


@pytest.mark.parametrize(
    "path, value",
    [
        ("phase.generation.nextAttempt", generation(status="ready", nextAttempt=1.0)),
        ("phase.generation.nextAttempt", generation(status="ready", nextAttempt=True)),
        ("phase.generation.nextAttempt", generation(status="ready", nextAttempt=2**53)),
        ("phase.generation.status", generation(status="done", nextAttempt=1)),
        ("phase.generation.notBefore", generation(status="ready", nextAttempt=1, notBefore=1)),
        ("control", {**RUNS[0], "control": None}),
        ("inbox.steer[0]", {**RUNS[0], "inbox": NUMBERED}),
        ("phase.skipInboxOnce", run({**CHECKPOINT, "skipInboxOnce": False})),
        ("settings.steeringMode", {**RUNS[0], "settings": SOME_STEERING}),
    ],
)
def test_a_wrong_value_is_refused_with_its_path(path: str, value: JsonObject) -> None:
    with pytest.raises(Refused) as refused:
        RunState.from_json(value)
    assert refused.value.path == path


READY_TO_COMMIT: JsonObject = {"kind": "ready_to_commit"}
INCONSISTENT: list[JsonObject] = [
    {**NAVIGATION, "summarize": True, "phase": READY_TO_COMMIT},
    {**NAVIGATION, "targetId": None, "summarize": True, "phase": {"kind": "summary", "structural": DECIDING}},
    {**NAVIGATION, "summarize": False, "customInstructions": "x", "phase": READY_TO_COMMIT},
]


@pytest.mark.parametrize("value", INCONSISTENT)
def test_a_navigation_state_keeps_its_fields_consistent(value: JsonObject) -> None:
    with pytest.raises(Refused):
        NavigationState.from_json(value)


@pytest.mark.parametrize(
    "value",
    [
        {**LAST, "outcome": "failed"},
        {**LAST, "outcome": "completed", "error": ERROR},
        {**LAST, "outcome": "aborted", "runCompletion": "assistant"},
        {**LAST, "kind": "compaction", "outcome": "completed", "runCompletion": "assistant"},
        {**LAST, "kind": "navigation", "outcome": "completed", "finalAssistantEntryId": "e"},
    ],
)
def test_a_last_result_keeps_its_fields_consistent(value: JsonObject) -> None:
    with pytest.raises(Refused):
        LaneLastResult.from_json(value)


NAMELESS: JsonObject = {"role": "toolResult", "content": []}
HEAD: JsonObject = {"id": "e", "parentId": None, "seq": 1, "timestamp": 2}
ENTRIES: list[JsonObject] = [
    {**HEAD, "type": "message", "message": user("hi")},
    {**HEAD, "type": "message", "message": {"role": "bashExecution", "output": "x"}},
    {**HEAD, "type": "message", "message": result("t", "read"), "terminate": True},
    {**HEAD, "type": "message", "message": {**assistant(), "logprobs": [0.5]}, "newer": {"kept": True}},
    {**HEAD, "type": "compaction", "summary": "s", "retainedTail": [], "tokensBefore": 3, "fromHook": False},
    {**HEAD, "type": "branch_summary", "fromId": "f", "summary": "s", "fromHook": True, "usage": usage()},
    {**HEAD, "type": "custom", "customType": "note"},
    {**HEAD, "type": "custom", "customType": "note", "data": None},
]


@pytest.mark.covers("ST-2.1-01", "ST-2.1-02", "ST-2.1-03", "ST-2.1-04")
@pytest.mark.parametrize("value", ENTRIES)
def test_an_entry_is_read_and_written_back_with_fields_of_newer_versions(value: JsonObject) -> None:
    assert same(Entry.from_json(value).to_json(), value)


@pytest.mark.parametrize(
    "path, value",
    [
        ("customType", {**HEAD, "type": "custom"}),
        ("customType", {**HEAD, "type": "message", "message": user("x"), "customType": "note"}),
        ("type", {**HEAD, "type": "note"}),
        ("message", {**HEAD, "type": "message"}),
        ("message.stopReason", {**HEAD, "type": "message", "message": assistant(stop="pending")}),
        ("message.usage", {**HEAD, "type": "message", "message": {**assistant(), "usage": {}}}),
        ("message.toolCallId", {**HEAD, "type": "message", "message": NAMELESS}),
        ("terminate", {**HEAD, "type": "message", "message": user("x"), "terminate": True}),
        ("terminate", {**HEAD, "type": "message", "message": result("t", "read"), "terminate": False}),
        ("retainedTail", {**HEAD, "type": "compaction", "summary": "s", "tokensBefore": 3, "fromHook": False}),
        ("fromHook", {**HEAD, "type": "branch_summary", "fromId": "f", "summary": "s"}),
        ("parentId", {"id": "e", "seq": 1, "timestamp": 1, "type": "custom", "customType": "n"}),
        ("seq", {"id": "e", "parentId": None, "timestamp": 1, "type": "custom", "customType": "n"}),
    ],
)
@pytest.mark.covers("ST-2.1-07", "ST-2.1-12")
def test_an_entry_of_another_shape_is_refused_with_its_path(path: str, value: JsonObject) -> None:
    with pytest.raises(Refused) as refused:
        Entry.from_json(value)
    assert refused.value.path.startswith(path)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**53, "\ud800", {"\ud800": 1}, [{"a": -(2**53)}]])
def test_what_json_does_not_keep_is_refused(value: Json) -> None:
    with pytest.raises(Refused):
        read_json(value)


@pytest.mark.covers("ST-1.3-13")
def test_there_are_exactly_twelve_namespaces() -> None:
    assert len(Namespace) == 12
    with pytest.raises(Refused, match="namespace"):
        Observed.from_json([{"kind": "register", "op": "delete", "seq": 1, "namespace": "lane.queue", "key": "k"}])


@pytest.mark.parametrize(
    "element, path",
    [
        ({"kind": "note"}, "[0].kind"),
        ({"kind": "register", "op": "set", "seq": 1, "namespace": "fact.custom", "key": "k"}, "[0].value"),
        (
            {"kind": "register", "op": "delete", "seq": 1, "namespace": "fact.custom", "key": "k", "value": 1},
            "[0].value",
        ),
        ({"kind": "usage", "id": "u", "seq": 1, "adjustment": 0, "usage": {}}, "[0].adjustment"),
    ],
)
@pytest.mark.covers("ST-1.4-01")
def test_a_write_of_another_kind_is_refused_with_its_path(element: JsonObject, path: str) -> None:
    with pytest.raises(Refused) as refused:
        Observed.from_json([element])
    assert refused.value.path == path


def test_the_entries_of_one_commit_share_its_timestamp() -> None:
    one: JsonObject = {"kind": "entry", **ENTRIES[6]}
    other: JsonObject = {**one, "id": "f", "seq": 2, "timestamp": 3}
    assert Observed.from_json([one, {**other, "timestamp": 2}]).timestamp == 2
    for elements, said in (([one, other], UNSET), ([one], 7)):
        with pytest.raises(Refused, match="timestamp"):
            Observed.from_json(elements, said)  # type: ignore[arg-type]


@pytest.mark.parametrize("one, other", [(1, 1.0), (True, 1), (None, False), ("1", 1), ([1], [1, 2]), ({}, {"a": None})])
def test_json_values_of_different_kinds_differ(one: Json, other: Json) -> None:
    assert not same(one, other)
    assert same({"a": one, "b": other}, {"b": other, "a": one})


def test_differences_are_worded_with_paths() -> None:
    expected: Json = {"phase": {"calls": [{"n": 1}, {"n": 2}]}, "gone": 1}
    found: Json = {"phase": {"calls": [{"n": 1}, {"n": 3}]}, "new": 2}
    assert differences(expected, found) == (
        "phase.calls[1].n: expected 2, found 3", "gone: expected 1, found nothing", "new: unexpected 2",
    )  # fmt: skip
