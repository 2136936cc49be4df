"""When a conversation is compacted before it no longer fits (§3.12, decision AMB-14)."""

from collections.abc import Callable, Mapping

from restartpoint_reference.queries import BranchScan, scan_branch
from restartpoint_reference.store import State
from restartpoint_reference.tree import DROPPED, Projector, messages_of, project
from restartpoint_reference.vocabulary.entries import EntryType
from restartpoint_reference.vocabulary.messages import Message, role
from restartpoint_reference.vocabulary.registers import CompactionSettings


def should_compact(context_tokens: int, context_window: int, settings: CompactionSettings) -> bool:
    """Whether the context has eaten into the reserve; never when disabled or when the window is unknown (not positive).

    All three counts are tokens; total.
    """
    return settings.enabled and context_window > 0 and context_tokens > context_window - settings.reserve_tokens


def context_tokens(
    state: State,
    leaf: str | None,
    estimate: Callable[[Message], int],
    projectors: Mapping[str, Projector] | None = None,
) -> int:
    """The tokens of the context at this leaf: the newest report after the newest compaction, and what came later.

    ``estimate`` judges one message; without a report the whole context is estimated. An older report than the
    compaction counts what is no longer there.
    """
    later = 0
    scan = [] if leaf is None else scan_branch(state, BranchScan(start=leaf, stop_at_type=EntryType.COMPACTION))
    for entry in scan:
        reported = None if entry.message is None else reported_tokens(entry.message)
        if reported is not None:
            return reported + later
        later += sum(map(estimate, messages_of(entry, projectors)))
    return sum(map(estimate, project(state, leaf, projectors)))


def reported_tokens(message: Message) -> int | None:
    """The tokens of the context up to and with this response, as the provider counted them; None when it did not.

    A response that ended as error, aborted or deferred is no report: it is not in the context.
    """
    usage = message.get("usage")
    if role(message) != "assistant" or message.get("stopReason") in DROPPED or not isinstance(usage, dict):
        return None
    parts = [usage.get(key) for key in ("input", "output", "cacheRead", "cacheWrite")]
    total = usage.get("totalTokens")
    counted = total if isinstance(total, int) and total > 0 else sum(part for part in parts if isinstance(part, int))
    return counted if counted > 0 else None
