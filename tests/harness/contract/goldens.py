"""Every variant of every durable register value, with the exact bytes that it has on disk."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from restartpoint.contract import (
    FACT_CUSTOM,
    FACT_LABEL,
    FACT_NAME,
    LANE_CONFIG,
    LANE_LAST_RESULT,
    LANE_LEAF,
    LANE_STATE,
    OP_META,
    OP_PREPARATION,
    OP_STATE,
    OP_TOOL_ARGS,
    PENDING_ENTRY,
    AgentMessage,
    AssistantPhase,
    BranchSummaryPreparation,
    CallCompleted,
    CallEffectPending,
    CallPlanned,
    CancelRequested,
    CheckpointPhase,
    CompactionIntent,
    CompactionPhase,
    CompactionPreparation,
    CompactionSettings,
    CompactionState,
    DeferredEffectPending,
    DeferredPhase,
    DeferredSuspended,
    FailureDrainPhase,
    FileOperations,
    GenerationContext,
    GenerationEffectPending,
    GenerationReady,
    GenerationRetryWait,
    Inbox,
    LaneConfiguration,
    LaneLastResult,
    LaneState,
    MayFinish,
    ModelIdentity,
    Namespace,
    NavigationIntent,
    NavigationPhase,
    NavigationState,
    NeedAssistant,
    NormalizedRetryPolicy,
    Operation,
    OperationError,
    PendingCustom,
    PendingMessage,
    ResponseProvenance,
    RunIntent,
    Running,
    RunPhase,
    RunSettings,
    RunState,
    StructuralDecision,
    StructuralProvenance,
    SummaryContext,
    SummaryEffectPending,
    SummaryGeneration,
    SummaryReady,
    SummaryRequest,
    SummaryRetryWait,
    ToolBatch,
    ToolsPhase,
)  # fmt: skip

__all__ = ["GOLDENS", "Golden"]


Group: TypeAlias = Literal["lane", "operation", "run", "structural"]


@dataclass(frozen=True, kw_only=True)
class Golden:
    """A register value and its JSON text."""

    group: Group
    name: str
    namespace: Namespace[Any]
    value: Any
    text: str


CONFIG = LaneConfiguration(
    model=ModelIdentity(provider="acme", model_id="m-1"), thinking_level="high", active_tool_names=["read", "write"]
)
CONFIG_TEXT = '{"model":{"provider":"acme","modelId":"m-1"},"thinkingLevel":"high","activeToolNames":["read","write"]}'
RETRY = NormalizedRetryPolicy(max_attempts=4, base_delay_ms=2000)
RETRY_TEXT = '{"maxAttempts":4,"baseDelayMs":2000}'
USER: AgentMessage = {"role": "user", "content": [{"type": "text", "text": "é\u2028"}], "timestamp": 5}
USER_TEXT = '{"role":"user","content":[{"type":"text","text":"é\u2028"}],"timestamp":5}'
SETTINGS = RunSettings(
    compaction=CompactionSettings(enabled=True, reserve_tokens=16384, keep_recent_tokens=20000),
    steering_mode="all",
    follow_up_mode="one-at-a-time",
    tool_execution="parallel",
)
SETTINGS_TEXT = (
    '{"compaction":{"enabled":true,"reserveTokens":16384,"keepRecentTokens":20000},"steeringMode":"all",'
    '"followUpMode":"one-at-a-time","toolExecution":"parallel"}'
)
ERROR = OperationError(code="provider_error", message="no")
ERROR_TEXT = '{"code":"provider_error","message":"no"}'

# --- lanes, pending content, facts ------------------------------------------------------------------------------

LANES = (
    ("leaf at the root", LANE_LEAF, None, "null"),
    ("leaf at an entry", LANE_LEAF, "e_1", '"e_1"'),
    ("configuration", LANE_CONFIG, CONFIG, CONFIG_TEXT),
    (
        "idle lane", LANE_STATE, LaneState(current_operation_id=None, pending_next_run=[]),
        '{"currentOperationId":null,"pendingNextRun":[]}',
    ),
    (
        "busy lane", LANE_STATE, LaneState(current_operation_id="op_1", pending_next_run=["e_1", "e_2"]),
        '{"currentOperationId":"op_1","pendingNextRun":["e_1","e_2"]}',
    ),
    (
        "completed run", LANE_LAST_RESULT,
        LaneLastResult(operation_id="op_1", kind="run", outcome="completed", leaf_id="e_3",
                       final_assistant_entry_id="e_3", run_completion="assistant"),
        '{"operationId":"op_1","kind":"run","outcome":"completed","leafId":"e_3","finalAssistantEntryId":"e_3",'
        '"runCompletion":"assistant"}',
    ),
    (
        "run that its tools ended", LANE_LAST_RESULT,
        LaneLastResult(operation_id="op_1", kind="run", outcome="completed", leaf_id="e_3",
                       run_completion="terminated_tools"),
        '{"operationId":"op_1","kind":"run","outcome":"completed","leafId":"e_3","runCompletion":"terminated_tools"}',
    ),
    (
        "failed run", LANE_LAST_RESULT,
        LaneLastResult(operation_id="op_1", kind="run", outcome="failed", leaf_id="e_3",
                       final_assistant_entry_id="e_2", error=ERROR),
        '{"operationId":"op_1","kind":"run","outcome":"failed","leafId":"e_3","finalAssistantEntryId":"e_2",'
        f'"error":{ERROR_TEXT}}}',
    ),
    (
        "aborted navigation at the root", LANE_LAST_RESULT,
        LaneLastResult(operation_id="op_1", kind="navigation", outcome="aborted", leaf_id=None),
        '{"operationId":"op_1","kind":"navigation","outcome":"aborted","leafId":null}',
    ),
    (
        "declined compaction", LANE_LAST_RESULT,
        LaneLastResult(operation_id="op_1", kind="compaction", outcome="declined", leaf_id="e_1"),
        '{"operationId":"op_1","kind":"compaction","outcome":"declined","leafId":"e_1"}',
    ),
    ("pending message", PENDING_ENTRY, PendingMessage(payload=USER), f'{{"type":"message","payload":{USER_TEXT}}}'),
    ("pending custom", PENDING_ENTRY, PendingCustom(custom_type="x"), '{"type":"custom","customType":"x"}'),
    (
        "pending custom null", PENDING_ENTRY, PendingCustom(custom_type="x", payload=None),
        '{"type":"custom","customType":"x","payload":null}',
    ),
    (
        "pending custom value", PENDING_ENTRY, PendingCustom(custom_type="x", payload=[1, 1.0, {"b": True, "a": None}]),
        '{"type":"custom","customType":"x","payload":[1,1.0,{"b":true,"a":null}]}',
    ),
    ("name", FACT_NAME, 'a "name"', '"a \\"name\\""'),
    ("label", FACT_LABEL, "label", '"label"'),
    ("custom fact null", FACT_CUSTOM, None, "null"),
    ("custom fact", FACT_CUSTOM, {"z": 1, "a": [0.5, -0.0, 1e300]}, '{"z":1,"a":[0.5,-0.0,1e300]}'),
)  # fmt: skip

# --- operations -------------------------------------------------------------------------------------------------

META = '{"operationId":"op_1","lane":"main","sourceLeafId":"e_0","startedAt":7,"intent":'


def operation(intent: RunIntent | CompactionIntent | NavigationIntent, source: str | None = "e_0") -> Operation:
    return Operation(operation_id="op_1", lane="main", source_leaf_id=source, started_at=7, intent=intent)


OPERATIONS = (
    (
        "run intent", OP_META, operation(RunIntent(prompt_entry_ids=["e_1"])),
        META + '{"kind":"run","promptEntryIds":["e_1"]}}',
    ),
    (
        "run intent with everything", OP_META,
        operation(RunIntent(prompt_entry_ids=[], system_prompt_override="be", resume_data={"h": {"k": 1}}), None),
        META.replace('"e_0"', "null")
        + '{"kind":"run","promptEntryIds":[],"systemPromptOverride":"be","resumeData":{"h":{"k":1}}}}',
    ),
    ("compaction intent", OP_META, operation(CompactionIntent()), META + '{"kind":"compaction"}}'),
    (
        "compaction intent with instructions", OP_META, operation(CompactionIntent(custom_instructions="short")),
        META + '{"kind":"compaction","customInstructions":"short"}}',
    ),
    (
        "navigation intent to the root", OP_META, operation(NavigationIntent(target_id=None, summarize=False)),
        META + '{"kind":"navigation","targetId":null,"summarize":false}}',
    ),
    (
        "navigation intent with everything", OP_META,
        operation(NavigationIntent(target_id="e_9", summarize=True, label="l", custom_instructions="c")),
        META + '{"kind":"navigation","targetId":"e_9","summarize":true,"label":"l","customInstructions":"c"}}',
    ),
    ("tool arguments", OP_TOOL_ARGS, {"path": "/x", "n": 1}, '{"path":"/x","n":1}'),
    (
        "compaction preparation", OP_PREPARATION,
        CompactionPreparation(
            messages_to_summarize=[USER], turn_prefix_messages=[], retained_tail=[USER], is_split_turn=False,
            tokens_before=9, file_ops=FileOperations(read=["a"], written=[], edited=["b"]),
            settings=SETTINGS.compaction,
        ),
        f'{{"kind":"compaction","messagesToSummarize":[{USER_TEXT}],"turnPrefixMessages":[],'
        f'"retainedTail":[{USER_TEXT}],"isSplitTurn":false,"tokensBefore":9,'
        '"fileOps":{"read":["a"],"written":[],"edited":["b"]},'
        '"settings":{"enabled":true,"reserveTokens":16384,"keepRecentTokens":20000}}',
    ),
    (
        "compaction preparation after another", OP_PREPARATION,
        CompactionPreparation(
            messages_to_summarize=[], turn_prefix_messages=[USER], retained_tail=[], is_split_turn=True,
            tokens_before=0, previous_summary="before", file_ops=FileOperations(read=[], written=["w"], edited=[]),
            settings=CompactionSettings(enabled=False, reserve_tokens=0, keep_recent_tokens=1),
        ),
        f'{{"kind":"compaction","messagesToSummarize":[],"turnPrefixMessages":[{USER_TEXT}],"retainedTail":[],'
        '"isSplitTurn":true,"tokensBefore":0,"previousSummary":"before",'
        '"fileOps":{"read":[],"written":["w"],"edited":[]},'
        '"settings":{"enabled":false,"reserveTokens":0,"keepRecentTokens":1}}',
    ),
    (
        "branch summary preparation", OP_PREPARATION,
        BranchSummaryPreparation(
            messages=[USER], file_ops=FileOperations(read=[], written=[], edited=[]), total_tokens=3
        ),
        f'{{"kind":"branch_summary","messages":[{USER_TEXT}],"fileOps":{{"read":[],"written":[],"edited":[]}},'
        '"totalTokens":3}',
    ),
)  # fmt: skip

# --- runs -------------------------------------------------------------------------------------------------------

INBOX = Inbox(steer=["s"], follow_up=["f"], writes=["w"])
INBOX_TEXT = '{"steer":["s"],"followUp":["f"],"writes":["w"]}'
RUNNING = '{"status":"running"}'


def run(phase: RunPhase, latest: str | None = None) -> RunState:
    return RunState(control=Running(), settings=SETTINGS, phase=phase, inbox=INBOX, latest_assistant_entry_id=latest)


def run_text(phase: str, latest: str = "null", control: str = RUNNING) -> str:
    return (
        f'{{"kind":"run","control":{control},"settings":{SETTINGS_TEXT},"phase":{phase},"inbox":{INBOX_TEXT},'
        f'"latestAssistantEntryId":{latest}}}'
    )


CONTEXT = GenerationContext(
    step_id="st", trigger_entry_id="t", configuration=CONFIG, stream_options={"maxTokens": 5, "deferred": False},
    retry_policy=RETRY, overflow_recovery_used=True,
)  # fmt: skip
CONTEXT_TEXT = (
    f'{{"stepId":"st","triggerEntryId":"t","configuration":{CONFIG_TEXT},'
    f'"streamOptions":{{"maxTokens":5,"deferred":false}},"retryPolicy":{RETRY_TEXT},"overflowRecoveryUsed":true}}'
)
CHECKPOINT = CheckpointPhase(continuation=NeedAssistant(overflow_recovery_used=False), trigger_entry_id="t")
CHECKPOINT_TEXT = (
    '{"kind":"checkpoint","continuation":{"kind":"need_assistant","overflowRecoveryUsed":false},"triggerEntryId":"t"}'
)
DECIDING = StructuralDecision(task_id="task", status="deciding")
DECIDING_TEXT = '{"taskId":"task","status":"deciding"}'
CANCELLED = CancelRequested(requested_at=8, drained_steer=["s"], drained_follow_up=[])
CANCELLED_TEXT = '{"status":"cancel_requested","requestedAt":8,"drainedSteer":["s"],"drainedFollowUp":[]}'

RUNS = (
    ("checkpoint that needs an assistant", OP_STATE, run(CHECKPOINT), run_text(CHECKPOINT_TEXT)),
    (
        "checkpoint that may finish", OP_STATE,
        run(
            CheckpointPhase(
                continuation=MayFinish(include_final_assistant=True), trigger_entry_id="t",
                threshold_checked_trigger_entry_id="t", skip_inbox_once=True,
            ),
            "a",
        ),
        run_text(
            '{"kind":"checkpoint","continuation":{"kind":"may_finish","includeFinalAssistant":true},'
            '"triggerEntryId":"t","thresholdCheckedTriggerEntryId":"t","skipInboxOnce":true}',
            '"a"',
        ),
    ),
    (
        "cancelled checkpoint", OP_STATE,
        RunState(control=CANCELLED, settings=SETTINGS, phase=CHECKPOINT, inbox=INBOX, latest_assistant_entry_id=None),
        run_text(CHECKPOINT_TEXT, control=CANCELLED_TEXT),
    ),
    (
        "generation ready", OP_STATE,
        run(AssistantPhase(generation=GenerationReady(context=CONTEXT, next_attempt=1))),
        run_text(f'{{"kind":"assistant","generation":{{"status":"ready","context":{CONTEXT_TEXT},"nextAttempt":1}}}}'),
    ),
    (
        "generation intended", OP_STATE,
        run(
            AssistantPhase(
                generation=GenerationEffectPending(
                    context=CONTEXT, attempt=2, response_entry_id="r", usage_id="u", intended_output_limit=100,
                    context_window=200,
                )
            )
        ),
        run_text(
            f'{{"kind":"assistant","generation":{{"status":"effect_pending","context":{CONTEXT_TEXT},"attempt":2,'
            '"responseEntryId":"r","usageId":"u","intendedOutputLimit":100,"contextWindow":200}}'
        ),
    ),
    (
        "generation waits", OP_STATE,
        run(
            AssistantPhase(
                generation=GenerationRetryWait(context=CONTEXT, next_attempt=3, not_before=9, error_message="busy")
            )
        ),
        run_text(
            f'{{"kind":"assistant","generation":{{"status":"retry_wait","context":{CONTEXT_TEXT},"nextAttempt":3,'
            '"notBefore":9,"errorMessage":"busy"}}'
        ),
    ),
    (
        "tools", OP_STATE,
        run(
            ToolsPhase(
                batch=ToolBatch(
                    assistant_entry_id="a", configuration=CONFIG, turn_id="st",
                    calls=[
                        CallCompleted(source_index=0, result_entry_id="r0", terminate=False),
                        CallEffectPending(source_index=2, result_entry_id="r2", replay="safe"),
                        CallEffectPending(source_index=3, result_entry_id="r3", replay="never"),
                        CallPlanned(source_index=4, result_entry_id="r4"),
                    ],
                )
            )
        ),
        run_text(
            f'{{"kind":"tools","batch":{{"assistantEntryId":"a","configuration":{CONFIG_TEXT},"turnId":"st","calls":['
            '{"status":"completed","sourceIndex":0,"resultEntryId":"r0","terminate":false},'
            '{"status":"effect_pending","sourceIndex":2,"resultEntryId":"r2","replay":"safe"},'
            '{"status":"effect_pending","sourceIndex":3,"resultEntryId":"r3","replay":"never"},'
            '{"status":"planned","sourceIndex":4,"resultEntryId":"r4"}]}}'
        ),
    ),
    (
        "compaction inside a run", OP_STATE,
        run(CompactionPhase(reason="threshold", structural=DECIDING, resume_after=CHECKPOINT)),
        run_text(
            f'{{"kind":"compaction","reason":"threshold","structural":{DECIDING_TEXT},"resumeAfter":{CHECKPOINT_TEXT}}}'
        ),
    ),
    (
        "deferred and suspended", OP_STATE,
        run(
            DeferredPhase(
                deferred=DeferredSuspended(
                    step_id="st", source_entry_id="e", poll=0, configuration=CONFIG, stream_options={}
                )
            )
        ),
        run_text(
            '{"kind":"deferred","deferred":{"status":"suspended","stepId":"st","sourceEntryId":"e","poll":0,'
            f'"configuration":{CONFIG_TEXT},"streamOptions":{{}}}}}}'
        ),
    ),
    (
        "poll intended", OP_STATE,
        run(
            DeferredPhase(
                deferred=DeferredEffectPending(
                    step_id="st", source_entry_id="e", poll=1, response_entry_id="r", usage_id="u",
                    configuration=CONFIG, stream_options={},
                )
            )
        ),
        run_text(
            '{"kind":"deferred","deferred":{"status":"effect_pending","stepId":"st","sourceEntryId":"e","poll":1,'
            f'"responseEntryId":"r","usageId":"u","configuration":{CONFIG_TEXT},"streamOptions":{{}}}}}}'
        ),
    ),
    (
        "failure from a response", OP_STATE,
        run(FailureDrainPhase(error=ERROR, provenance=ResponseProvenance(entry_id="e"))),
        run_text(f'{{"kind":"failure_drain","error":{ERROR_TEXT},"provenance":{{"kind":"response","entryId":"e"}}}}'),
    ),
    (
        "failure from a structural task", OP_STATE,
        run(
            FailureDrainPhase(
                error=OperationError(code="c", message="m", details={"n": 1}),
                provenance=StructuralProvenance(task_id="task"),
            )
        ),
        run_text(
            '{"kind":"failure_drain","error":{"code":"c","message":"m","details":{"n":1}},'
            '"provenance":{"kind":"structural","taskId":"task"}}'
        ),
    ),
)  # fmt: skip

# --- structural operations --------------------------------------------------------------------------------------

SUMMARY = SummaryContext(
    task_id="task", result_entry_id="r", kind="compaction", configuration=CONFIG, stream_options={},
    retry_policy=RETRY, reason="manual",
)  # fmt: skip
SUMMARY_TEXT = (
    f'{{"taskId":"task","resultEntryId":"r","kind":"compaction","configuration":{CONFIG_TEXT},"streamOptions":{{}},'
    f'"retryPolicy":{RETRY_TEXT},"reason":"manual"}}'
)
BRANCH = SummaryContext(
    task_id="task", result_entry_id="r", kind="branch_summary", configuration=CONFIG, stream_options={},
    retry_policy=RETRY,
)  # fmt: skip
BRANCH_TEXT = SUMMARY_TEXT.replace('"kind":"compaction"', '"kind":"branch_summary"').replace(',"reason":"manual"', "")


def generating(generation: SummaryGeneration) -> StructuralDecision:
    return StructuralDecision(task_id="task", status="generating", generation=generation)


def compaction(structural: StructuralDecision) -> CompactionState:
    return CompactionState(control=Running(), structural=structural)


def compaction_text(generation: str) -> str:
    return (
        f'{{"kind":"compaction","control":{RUNNING},'
        f'"structural":{{"taskId":"task","status":"generating","generation":{generation}}}}}'
    )


STRUCTURAL = (
    (
        "compaction deciding", OP_STATE,
        CompactionState(control=CANCELLED, custom_instructions="short", structural=DECIDING),
        f'{{"kind":"compaction","control":{CANCELLED_TEXT},"customInstructions":"short","structural":{DECIDING_TEXT}}}',
    ),
    (
        "summary ready", OP_STATE, compaction(generating(SummaryReady(context=SUMMARY, next_attempt=1))),
        compaction_text(f'{{"status":"ready","context":{SUMMARY_TEXT},"nextAttempt":1}}'),
    ),
    (
        "summary between requests", OP_STATE,
        compaction(generating(SummaryEffectPending(context=SUMMARY, attempt=1, usage_ids=["u0"]))),
        compaction_text(f'{{"status":"effect_pending","context":{SUMMARY_TEXT},"attempt":1,"usageIds":["u0"]}}'),
    ),
    (
        "summary request intended", OP_STATE,
        compaction(
            generating(
                SummaryEffectPending(
                    context=SUMMARY, attempt=1, request=SummaryRequest(index=0, usage_id="u"), usage_ids=[]
                )
            )
        ),
        compaction_text(
            f'{{"status":"effect_pending","context":{SUMMARY_TEXT},"attempt":1,"request":{{"index":0,"usageId":"u"}},'
            '"usageIds":[]}'
        ),
    ),
    (
        "summary waits", OP_STATE,
        compaction(
            generating(SummaryRetryWait(context=SUMMARY, next_attempt=2, not_before=9, error_message="busy"))
        ),
        compaction_text(
            f'{{"status":"retry_wait","context":{SUMMARY_TEXT},"nextAttempt":2,"notBefore":9,"errorMessage":"busy"}}'
        ),
    ),
    (
        "navigation to the root", OP_STATE,
        NavigationState(
            control=Running(), target_id=None, summarize=False, phase=NavigationPhase(kind="ready_to_commit")
        ),
        f'{{"kind":"navigation","control":{RUNNING},"targetId":null,"summarize":false,'
        '"phase":{"kind":"ready_to_commit"}}',
    ),
    (
        "navigation with a summary", OP_STATE,
        NavigationState(
            control=Running(), target_id="e", label="l", custom_instructions="c", summarize=True,
            phase=NavigationPhase(kind="summary", structural=generating(SummaryReady(context=BRANCH, next_attempt=1))),
        ),
        f'{{"kind":"navigation","control":{RUNNING},"targetId":"e","label":"l","customInstructions":"c",'
        '"summarize":true,"phase":{"kind":"summary","structural":{"taskId":"task","status":"generating","generation":'
        f'{{"status":"ready","context":{BRANCH_TEXT},"nextAttempt":1}}}}}}}}',
    ),
)  # fmt: skip

GROUPS: tuple[tuple[Group, tuple[tuple[str, Namespace[Any], Any, str], ...]], ...] = (
    ("lane", LANES),
    ("operation", OPERATIONS),
    ("run", RUNS),
    ("structural", STRUCTURAL),
)
GOLDENS = tuple(
    Golden(group=group, name=name, namespace=namespace, value=value, text=text)
    for group, goldens in GROUPS
    for name, namespace, value, text in goldens
)
