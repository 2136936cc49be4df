"""The slices of the state machine that are explored one by one; together they take every transition."""

from dataclasses import replace
from typing import Final

from restartpoint_reference.explore.choices.alphabet import COMPACTION, SETTINGS, Alphabet, Result, response
from restartpoint_reference.explore.world import Slice
from restartpoint_reference.vocabulary.states import QueueMode, Replay, ToolExecution

STOP: Final = response("stop")
RETRYABLE: Final = response("error", error="overloaded")
FINAL_ERROR: Final = response("error", error="no such model")
OVERFLOW: Final = response("error", error="prompt is too long")
CUT_SHORT: Final = response("error", error="cut below the limit", output=1)
DEFERRED: Final = response("deferred", handle="h-1")
NO_HANDLE: Final = response("error", error="no handle")

RUN_WITH_TOOLS: Final = Slice(
    name="run-with-tools",
    summary="Responses that ask for tools, results that end the run or not, and a crash at any place.",
    public=("accept_run", "configure_lane"),
    alphabet=Alphabet(
        responses=(STOP,),
        results=(Result(), Result(terminate=True), Result(usage=True)),
        replays=(Replay.NEVER, Replay.SAFE),
    ),
    asks=("toolUse", "length"),
    bounds={"operations": 1, "turns": 2, "calls": 2, "items": 1, "settings": 0, "crash": 1},
    full={"turns": 3},
)
SEQUENTIAL_TOOLS: Final = replace(
    RUN_WITH_TOOLS,
    name="sequential-tools",
    summary="The same, one call after the other.",
    alphabet=replace(
        RUN_WITH_TOOLS.alphabet,
        results=(Result(), Result(terminate=True)),
        settings=replace(SETTINGS, tool_execution=ToolExecution.SEQUENTIAL),
    ),
    asks=("toolUse",),
    full={"calls": 3, "settings": 1},
)
INBOX: Final = Slice(
    name="inbox",
    summary="Steering, follow-ups, deferred writes and next-run messages, and their withdrawal, at any moment.",
    public=(
        "accept_run", "enqueue_steer", "enqueue_follow_up", "enqueue_next_run", "defer_write", "write_idle",
        "cancel_queued", "cancel_next_run",
    ),
    alphabet=Alphabet(
        responses=(STOP, FINAL_ERROR),
        custom_writes=(True, False),
        settings=replace(SETTINGS, steering_mode=QueueMode.ONE_AT_A_TIME, follow_up_mode=QueueMode.ALL),
    ),
    bounds={"operations": 1, "turns": 1, "items": 2, "withdrawals": 1},
    full={"operations": 2, "turns": 2, "items": 3},
)  # fmt: skip
ABORT: Final = Slice(
    name="abort",
    summary="An abort at any moment of a run with tools and queued input, and a crash before or after it.",
    public=("accept_run", "abort_run", "enqueue_steer", "enqueue_follow_up", "defer_write", "finalize_externally"),
    alphabet=Alphabet(responses=(STOP,), replays=(Replay.NEVER, Replay.SAFE)),
    asks=("toolUse",),
    bounds={"operations": 1, "turns": 1, "calls": 2, "items": 1, "aborts": 1, "crash": 1},
    full={"turns": 2, "aborts": 2},
)
RETRY: Final = Slice(
    name="retry-and-failure",
    summary="Errors that a later attempt may mend or none will, exhausted attempts, and revival by new input.",
    public=("accept_run", "enqueue_steer", "enqueue_follow_up", "defer_write", "abort_run"),
    alphabet=Alphabet(responses=(STOP, RETRYABLE, FINAL_ERROR, OVERFLOW)),
    bounds={"operations": 1, "turns": 2, "attempts": 2, "items": 1, "aborts": 1, "crash": 1},
    full={"items": 2, "attempts": 3},
)
DEFERRED_ANSWERS: Final = Slice(
    name="deferred",
    summary="Answers that come later: polls that are pending, answered, failed, unknown or cancelled.",
    public=("accept_run", "abort_run", "defer_write"),
    alphabet=Alphabet(responses=(STOP, DEFERRED, NO_HANDLE, FINAL_ERROR)),
    asks=("toolUse",),
    bounds={"operations": 1, "turns": 1, "items": 1, "aborts": 1, "polls": 2, "crash": 1},
    full={"turns": 2, "polls": 3, "crash": 2},
)
STRUCTURAL: Final = Slice(
    name="structural",
    summary="Compactions by hand, at the threshold and after an overflow: declined, by a hook, generated, retried.",
    public=(
        "accept_run", "accept_compaction", "write_idle", "abort_structural", "abort_run", "finalize_externally",
    ),
    alphabet=Alphabet(responses=(STOP, OVERFLOW, CUT_SHORT), custom_writes=(False,)),
    bounds={
        "operations": 1, "turns": 2, "attempts": 2, "items": 1, "checks": 1, "compactions": 1, "requests": 2,
        "aborts": 1, "crash": 1,
    },
    full={"items": 2, "requests": 3},
)  # fmt: skip
NAVIGATION: Final = Slice(
    name="navigation",
    summary="Navigations with and without a summary and a label, to every entry and to the root.",
    public=(
        "write_idle",
        "accept_navigation",
        "accept_summarized_navigation",
        "abort_structural",
        "finalize_externally",
    ),
    alphabet=Alphabet(custom_writes=(False,)),
    bounds={"operations": 2, "attempts": 2, "items": 2, "requests": 2, "aborts": 1, "crash": 1},
    full={"items": 4, "requests": 3},
)
TWO_LANES: Final = Slice(
    name="two-lanes",
    summary="Two lanes of one session at work at once, and a crash that takes both.",
    public=("accept_run", "enqueue_next_run", "abort_run"),
    alphabet=Alphabet(responses=(STOP,), settings=replace(SETTINGS, compaction=replace(COMPACTION, enabled=False))),
    asks=("toolUse",),
    bounds={"lanes": 2, "operations": 2, "turns": 2, "items": 1, "aborts": 0, "crash": 1},
    full={"aborts": 1},
)
SESSION: Final = Slice(
    name="session",
    summary="How sessions and lanes begin, facts, configuration and the caller's usage.",
    opened=False,
    public=(
        "create_session", "seed_main", "fork_into", "import_v3", "ensure_strand", "create_lane", "configure_lane",
        "set_fact", "delete_fact", "record_usage", "ensure_id", "write_idle", "enqueue_next_run", "cancel_next_run",
    ),
    alphabet=Alphabet(),
    bounds={"lanes": 2, "creations": 2, "facts": 2, "settings": 1, "items": 1, "withdrawals": 1},
    full={"facts": 3, "items": 2},
)  # fmt: skip

SLICES: Final = (
    RUN_WITH_TOOLS, SEQUENTIAL_TOOLS, INBOX, ABORT, RETRY, DEFERRED_ANSWERS, STRUCTURAL, NAVIGATION, TWO_LANES,
    SESSION,
)  # fmt: skip
"""Every slice, in the order of the specification."""
