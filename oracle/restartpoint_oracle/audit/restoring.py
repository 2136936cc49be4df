"""What a restore needs of a session besides the invariants: its lanes are whole (§3.3, §4.4)."""

from __future__ import annotations

from collections.abc import Iterator

from restartpoint_reference import Namespace, State, invariants

__all__ = ["restore_problems"]

_MAIN = "main"
_OF_A_LANE = (Namespace.LANE_LEAF, Namespace.LANE_CONFIG, Namespace.LANE_LAST_RESULT)


def restore_problems(state: State) -> Iterator[str]:
    """Where a harness could not attach to the session."""
    known = state.namespaces[Namespace.LANE_STATE]
    if _MAIN not in known:
        yield f"lane.state/{_MAIN} does not exist; every session has that lane"
    for namespace in _OF_A_LANE:
        for key in state.keys(namespace):
            if key not in known:
                yield f"{namespace}/{key} belongs to no lane: there is no lane.state/{key}"
    for view in invariants.operations(state):
        if view.lane not in state.namespaces[Namespace.LANE_CONFIG]:
            yield f"lane {view.lane} runs {view.operation_id} without a configuration"
