"""The ordered writes of every row of the table, transcribed from the specification's tables and held to every walk."""

import re
from collections.abc import Mapping
from functools import cache
from itertools import groupby

import pytest

from restartpoint_reference import TRANSITIONS, InsertEntry, Json, Namespace, SetRegister, Write
from tests.reference.walk import Step
from tests.reference.walks import SCENARIOS

TERMINAL = "-op.meta -op.state (-op.tool_args )?(-op.preparation )?(-pending.entry )?lane.lastResult lane.state"
"""The end of an operation, after what it publishes (§3.13)."""
SETTLED = "entry lane.leaf usage op.state"
RESULT = "entry lane.leaf op.state"
PLACED = "entry -pending.entry lane.leaf op.state"

WRITES = {
    "accept_run": "entry (-pending.entry )?lane.leaf op.meta op.state lane.state",
    "accept_compaction": "op.preparation op.meta op.state lane.state",
    "accept_navigation": "op.meta op.state lane.state",
    "accept_summarized_navigation": "op.preparation op.meta op.state lane.state",
    **dict.fromkeys(
        (
            "apply_writes", "apply_projecting_writes", "consume_steer", "consume_follow_up", "apply_cancelled_writes",
            "apply_writes_in_failure", "revive_from_failure",
        ),
        PLACED,
    ),
    "begin_threshold_compaction": "op.preparation op.state",
    "append_run_end_follow_up": "entry lane.leaf op.state",
    **dict.fromkeys(
        (
            "finish_run", "finish_terminated_tools", "finish_aborted_deferred", "decline_structural", "fail_structural",
            "finish_aborted_structural", "finish_aborted_compaction_in_run", "finish_aborted_run", "finish_failed",
            "finalize_externally",
        ),
        TERMINAL,
    ),
    **dict.fromkeys(
        (
            "settle_tool_calls", "settle_retryable", "settle_unpreparable_overflow", "settle_deferred",
            "settle_invalid_deferred", "settle_stop", "settle_failure", "settle_cancelled",
            "recover_exhausted_assistant", "cancel_assistant", "settle_poll_pending", "settle_poll_mismatch",
            "settle_poll_tool_calls", "settle_poll_ready", "settle_poll_failure", "cancel_poll",
        ),
        SETTLED,
    ),
    "settle_overflow": "entry lane.leaf usage op.preparation op.state",
    "intend_tool": "op.tool_args op.state",
    **dict.fromkeys(("settle_tool", "settle_cancelled_tool"), "entry lane.leaf (usage )?op.state"),
    **dict.fromkeys(
        (
            "refuse_tool", "refuse_truncated_tool", "interrupt_tool", "cancel_planned_tool", "cancel_refused_tool",
            "interrupt_cancelled_tool",
        ),
        RESULT,
    ),
    **dict.fromkeys(
        ("complete_terminating_batch", "complete_batch"), "entry lane.leaf (usage )?(-op.tool_args )?op.state"
    ),
    "publish_hook_compaction": f"(usage )?entry lane.leaf {TERMINAL}",
    "publish_hook_compaction_in_run": "(usage )?entry lane.leaf op.state",
    "publish_hook_navigation": f"(usage )?lane.leaf entry lane.leaf (fact.label )?{TERMINAL}",
    "settle_summary_request": "usage op.state",
    "publish_compaction": f"entry lane.leaf {TERMINAL}",
    "publish_compaction_in_run": "entry lane.leaf op.state",
    "publish_navigation": f"lane.leaf entry lane.leaf (fact.label )?{TERMINAL}",
    "navigate": f"lane.leaf (fact.label )?{TERMINAL}",
    **dict.fromkeys(("enqueue_steer", "enqueue_follow_up", "defer_write"), "pending.entry op.state"),
    "enqueue_next_run": "pending.entry lane.state",
    "cancel_queued": "op.state -pending.entry",
    "cancel_next_run": "lane.state -pending.entry",
    "write_idle": "entry lane.leaf",
    "create_session": "lane.leaf lane.state",
    "create_lane": "lane.config lane.leaf lane.state",
    **dict.fromkeys(("seed_main", "configure_lane"), "lane.config"),
    "record_usage": "usage",
    "import_v3": "(entry )?(fact.name )?(fact.label )?lane.leaf lane.state usage",
    "ensure_strand": "lane.leaf lane.config lane.state",
    "ensure_id": "fact.custom",
    "set_fact": "fact.(name|label|custom)",
    "delete_fact": "-fact.(name|label|custom)",
    "fork_into": "(entry )?(fact.[a-z]+ )*((lane.config )?lane.leaf lane.state ?)+",
    "recover_exhausted_summary": f"({TERMINAL})|(op.state)",
}  # fmt: skip
"""Per row, the kinds of its writes in their order, as a regular expression; neighbours of one kind count once."""
ALONE = "op.state"
"""What every row writes that has no line above: the operation's next state."""


def kind(write: Write) -> str:
    """``entry``, ``usage``, or the namespace of a register, with a minus where it is deleted."""
    json = write.to_json()
    if json["kind"] != "register":
        return str(json["kind"])
    return f"-{json['namespace']}" if json["op"] == "delete" else str(json["namespace"])


@cache
def walked() -> Mapping[str, tuple[Step, ...]]:
    """Every step of the walks, by the name of its transition."""
    found: dict[str, list[Step]] = {name: [] for name in TRANSITIONS}
    for scenario in SCENARIOS:
        for step in scenario().steps:
            found[step.commit.name].append(step)
    return {name: tuple(steps) for name, steps in found.items()}


@pytest.mark.parametrize("name", TRANSITIONS)
def test_a_transition_makes_the_writes_of_its_row_in_their_order(name: str) -> None:
    for step in walked()[name]:
        kinds = " ".join(found for found, _ in groupby(map(kind, step.commit.writes)))
        assert re.fullmatch(WRITES.get(name, ALONE), kinds), kinds


@pytest.mark.parametrize("name", TRANSITIONS)
def test_the_leaf_moves_last_onto_the_newest_entry(name: str) -> None:
    for step in (one for one in walked()[name] if one.commit.lane is not None):
        inserted = [write.entry.id for write in step.commit.writes if isinstance(write, InsertEntry)]
        if inserted:
            assert _set(step, Namespace.LANE_LEAF)[-1] == inserted[-1]


def _set(step: Step, namespace: Namespace) -> list[Json]:
    return [
        write.value for write in step.commit.writes if isinstance(write, SetRegister) and write.namespace is namespace
    ]
