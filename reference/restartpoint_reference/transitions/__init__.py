"""The named transitions of Part 3 and the session's own commits, one function each.

A transition is called with a state, a lane and its inputs, and answers a ``Commit`` or the ``Refusal`` of a guard.
``TRANSITIONS`` holds all of them by name.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from restartpoint_reference.transitions.acceptance import accept_run
from restartpoint_reference.transitions.checkpoint import append_run_end_follow_up
from restartpoint_reference.transitions.frame import Transition
from restartpoint_reference.transitions.generation import (
    end_retry_wait,
    intend_assistant,
    recover_assistant,
    recover_exhausted_assistant,
    start_generation,
)
from restartpoint_reference.transitions.queues import cancel_next_run, enqueue_next_run, write_idle
from restartpoint_reference.transitions.session import (
    configure_lane,
    create_lane,
    create_session,
    delete_fact,
    record_usage,
    seed_main,
    set_fact,
)
from restartpoint_reference.transitions.settlement import (
    settle_deferred,
    settle_failure,
    settle_invalid_deferred,
    settle_retryable,
    settle_stop,
    settle_tool_calls,
    settle_unpreparable_overflow,
)
from restartpoint_reference.transitions.terminal import finish_failed, finish_run, finish_terminated_tools
from restartpoint_reference.transitions.tools import (
    complete_batch,
    complete_terminating_batch,
    intend_tool,
    interrupt_tool,
    refuse_tool,
    refuse_truncated_tool,
    settle_tool,
)

ALL: Final[tuple[Transition, ...]] = (
    accept_run, start_generation, append_run_end_follow_up, finish_run, finish_terminated_tools,
    intend_assistant, settle_tool_calls, settle_retryable, settle_unpreparable_overflow, settle_deferred,
    settle_invalid_deferred, settle_stop, settle_failure, end_retry_wait, recover_assistant,
    recover_exhausted_assistant, intend_tool, settle_tool, refuse_tool, refuse_truncated_tool,
    complete_terminating_batch, complete_batch, interrupt_tool, finish_failed, enqueue_next_run,
    cancel_next_run, write_idle, create_session, seed_main, create_lane, configure_lane, set_fact, delete_fact,
    record_usage,
)  # fmt: skip

TRANSITIONS: Final[Mapping[str, Transition]] = MappingProxyType({found.name: found for found in ALL})
"""Every modelled transition by name, in the order of the table."""

NO_COMMIT: Final[Mapping[str, str]] = MappingProxyType(
    {"T37": "an orphaned call that is safe by its stored and current declaration runs again, unwritten (§4.5)"}
)
"""The modelled rows of the table that make no commit."""

__all__ = [
    "ALL", "NO_COMMIT", "TRANSITIONS", "Transition", "accept_run", "append_run_end_follow_up",
    "cancel_next_run", "complete_batch", "complete_terminating_batch", "configure_lane", "create_lane",
    "create_session", "delete_fact", "end_retry_wait", "enqueue_next_run", "finish_failed", "finish_run",
    "finish_terminated_tools", "intend_assistant", "intend_tool", "interrupt_tool", "record_usage",
    "recover_assistant", "recover_exhausted_assistant", "refuse_tool", "refuse_truncated_tool", "seed_main",
    "set_fact", "settle_deferred", "settle_failure", "settle_invalid_deferred", "settle_retryable",
    "settle_stop", "settle_tool", "settle_tool_calls", "settle_unpreparable_overflow", "start_generation",
    "write_idle",
]  # fmt: skip
