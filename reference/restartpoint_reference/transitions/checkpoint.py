"""What enters the tree at a checkpoint and keeps the run going (§3.12)."""

from dataclasses import dataclass, replace

from restartpoint_reference.shapes import JsonObject
from restartpoint_reference.transitions.frame import (
    Inputs,
    Seen,
    View,
    Writes,
    control_is_running,
    insert_message,
    set_leaf,
    set_state,
    transition,
)
from restartpoint_reference.transitions.terminal import inbox_is_empty
from restartpoint_reference.vocabulary.messages import role
from restartpoint_reference.vocabulary.states import Checkpoint, MayFinish, NeedAssistant


def awaiting_assistant(trigger: str) -> Checkpoint:
    """The checkpoint after input entered the tree: a turn is owed before any more input is drained (§3.12)."""
    continuation = NeedAssistant(overflow_recovery_used=False)
    return Checkpoint(continuation=continuation, trigger_entry_id=trigger, skip_inbox_once=True)


@dataclass(frozen=True, kw_only=True)
class RunEndFollowUp(Inputs):
    """The minted entry id, and what before_run_end answered as a user message (decision AMB-23)."""

    id: str
    message: JsonObject


def _followed_up(_: View, seen: Seen) -> RunEndFollowUp:
    return RunEndFollowUp(id=seen.first_entry().id, message=seen.first_message())


def run_may_finish(view: View, _: Inputs) -> str | None:
    """The run is at its finish boundary (§3.12)."""
    match view.run.phase:
        case Checkpoint(continuation=MayFinish()):
            return None
    return "the run may not finish"


def follow_up_is_a_user_message(_: View, inputs: RunEndFollowUp) -> str | None:
    """A follow-up is user input (§3.12)."""
    return None if role(inputs.message) == "user" else "the follow-up is not a user message"


@transition(
    "T13",
    section="3.12",
    phases=("checkpoint",),
    inputs=RunEndFollowUp,
    guards=(control_is_running, run_may_finish, inbox_is_empty, follow_up_is_a_user_message),
    extract=_followed_up,
)
def append_run_end_follow_up(view: View, inputs: RunEndFollowUp) -> Writes:
    """What before_run_end adds is born placed, and the run owes another turn."""
    return (
        insert_message(inputs.id, view.leaf, inputs.message),
        set_leaf(view, inputs.id),
        set_state(view, replace(view.run, phase=awaiting_assistant(inputs.id))),
    )
