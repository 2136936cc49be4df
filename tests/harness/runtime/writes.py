"""The ordered writes of every commit that this version makes, by the name of its transition, written down by hand.

They repeat the table of transitions independently of the model and of the runtime. ``O`` is the operation.
"""

__all__ = ["fits"]

_ENTRY = ["entry", "set lane.leaf/main"]
_STATE = ["set op.state/O"]
_END = ["delete op.meta/O", "delete op.state/O", "set lane.lastResult/main", "set lane.state/main"]
_RESPONSE = [*_ENTRY, "usage", *_STATE]
_RESULT = [*_ENTRY, *_STATE]

_EXACT: dict[str, list[str]] = {
    "seed_main": ["set lane.config/main"],
    "start_generation": _STATE,
    "intend_assistant": _STATE,
    "recover_assistant": _STATE,
    "settle_tool_calls": _RESPONSE,
    "settle_stop": _RESPONSE,
    "settle_failure": _RESPONSE,
    "settle_deferred": _RESPONSE,
    "settle_invalid_deferred": _RESPONSE,
    "settle_unpreparable_overflow": _RESPONSE,
    "recover_exhausted_assistant": _RESPONSE,
    "settle_tool": _RESULT,
    "refuse_tool": _RESULT,
    "refuse_truncated_tool": _RESULT,
    "interrupt_tool": _RESULT,
    "append_run_end_follow_up": [*_ENTRY, *_STATE],
    "finish_run": _END,
    "finish_terminated_tools": _END,
    "finish_failed": _END,
}


def fits(name: str, writes: list[str]) -> bool:
    """Whether a commit of that name may have exactly these writes."""
    match name:
        case "accept_run":
            entries = writes.count("entry")
            tail = ["set lane.leaf/main", "set op.meta/O", "set op.state/O", "set lane.state/main"]
            deletes = [write for write in writes if write.startswith("delete pending.entry/")]
            return entries > 0 and writes == ["entry"] * entries + deletes + tail
        case "intend_tool":
            return len(writes) == 2 and writes[0].startswith("set op.tool_args/O:") and writes[1:] == _STATE
        case "settle_tool":
            return writes in (_RESULT, _RESPONSE)
        case "complete_batch" | "complete_terminating_batch":
            deletes = [write for write in writes if write.startswith("delete op.tool_args/O:")]
            rows = ["usage"] * writes.count("usage")
            return len(rows) < 2 and writes == [*_ENTRY, *rows, *sorted(deletes), *_STATE]
        case _:
            return writes == _EXACT[name]
