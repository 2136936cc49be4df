"""The edits that nobody can see, since the edited file is one that another legal session would have left; with reasons.

A place is free for good where the walks of the model say so (``FREE``): whatever stands there was chosen outside, is
written once, and nothing else in the file depends on it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from restartpoint_reference import TRANSITIONS
from tests.oracle.audit.edits import EditKind, Outcome
from tests.reference.test_alterations import WITHOUT_ITS_WORDS
from tests.reference.walks import FREE
from tests.reference.walks.places import USAGE, under

__all__ = ["FREE_BESIDES", "reason_for"]

FREE_BESIDES: Final[Mapping[str, frozenset[str]]] = {
    # What a before_run hook returned, and the usage that a terminating tool reported.
    "accept_run": frozenset(
        under("op.meta.value.intent", "resumeData", "resumeData.memory", "resumeData.memory.n", "systemPromptOverride")
    ),
    "complete_terminating_batch": frozenset(USAGE | {"usage.id"}),
    # What a provider said in a response of which only the failure is used.
    "settle_invalid_deferred": frozenset(under("entry.message.deferred", "id")),
    "settle_unpreparable_overflow": frozenset(under("entry.message.content.*", "text", "type")),
}
"""More free places of transitions, in variants that the runtime makes and no walk does."""

COPIES: Final = frozenset({"fork_into", "import_v3", "ensure_strand"})
REPORTED: Final = frozenset({"settle_tool", "settle_cancelled_tool", "complete_batch", "complete_terminating_batch"})
UNCONDITIONAL: Final = ("recover_", "finish_aborted_")
OPTIONAL: Final[Mapping[str, str]] = {
    "mark_threshold_checked": "whether the context is near its limit was estimated outside",
}

_PLACES: Final = (
    (r"usage\.", "what somebody reported as spent, counted nowhere else"),
    (r".*\.(id|parentId|\w+Id|\w+Ids\.\*)$", "an id that was minted outside and that nothing else names yet"),
    (r"entry\.|pending\.entry\.", "what a person, a model, a tool or an application said, written once"),
    (r"(lane\.config|op\.state\.value\.settings)\.", "a setting, captured from outside"),
    (r"op\.state\..*\.(retryPolicy|streamOptions|context)", "options of a request, captured from outside"),
    (r".*(startedAt|notBefore|At)$", "a time, read from the clock once"),
    (r".*\.error\.", "the words and details of an error"),
    (r"fact\.", "a fact is whatever an application says"),
    (r"op\.tool_args\.", "arguments as a hook may have replaced them"),
    (r"op\.preparation\.", "what was prepared from the context for a summary, until it is published"),
)


def reason_for(outcome: Outcome) -> str | None:
    """Why an edit that was not found cannot be; None when it should have been."""
    edit, name = outcome.edit, outcome.names[0]
    calls = [each for each in outcome.names if TRANSITIONS[each].public or not TRANSITIONS[each].takes_lane]
    match edit.kind:
        case EditKind.ALTER:
            return _altered(outcome)
        case EditKind.MOVE_SEQ:
            return "sequence numbers may have gaps" if edit.place.endswith("by 1") else None
        case EditKind.MOVE_TIME:
            return "the time of a commit is the storage's, and a clock may be wrong"
        case EditKind.DROP_WRITE | EditKind.SWAP_WRITES if name in COPIES:
            return "what a commit copies from another session, and in which order, stands in the other session"
        case EditKind.DROP_WRITE if edit.place == "usage" and name in REPORTED:
            return "a tool need not report what it spent"
        case EditKind.DROP_COMMIT if outcome.is_last:
            return "a session may end before any commit"
        case EditKind.DROP_COMMIT | EditKind.DOUBLE_COMMIT | EditKind.TO_THE_END if name in calls:
            return "a public call is made whenever the caller likes, or twice, or never"
        case EditKind.SWAP_COMMITS if calls:
            return "a public call may come before or after its neighbour"
        case EditKind.DROP_COMMIT if outcome.now != outcome.names[1] or outcome.names[1].startswith(UNCONDITIONAL):
            return "the next commit is a recovery, a failure or an abort, which need nothing before them"
        case EditKind.DROP_COMMIT:
            return OPTIONAL.get(name)
        case _:
            return None


def _altered(outcome: Outcome) -> str | None:
    name, place = outcome.names[0], outcome.edit.place
    if (name, outcome.now) in WITHOUT_ITS_WORDS:
        return "a message in other words may be one that a tool or a provider gave"
    if place not in FREE.get(name, set()) | FREE_BESIDES.get(name, frozenset()):
        return None
    return next((reason for pattern, reason in _PLACES if re.match(pattern, place)), "chosen outside and written once")
