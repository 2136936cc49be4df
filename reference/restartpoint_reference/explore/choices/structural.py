"""The choices of structural work: compactions, navigations, and how their summaries come about."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from restartpoint_reference.explore.choices.alphabet import COMPACTION, usage
from restartpoint_reference.explore.choices.moment import Choice, Moment
from restartpoint_reference.preparation import BranchCut, CompactionCut, branch_places, compaction_places
from restartpoint_reference.transitions.attempts import IntendSummaryRequest, RetrySummary, SettleSummaryRequest
from restartpoint_reference.transitions.compaction import AcceptCompaction, Compact, SettleOverflow
from restartpoint_reference.transitions.frame import Inputs
from restartpoint_reference.transitions.navigation import AcceptNavigation, AcceptSummarizedNavigation
from restartpoint_reference.transitions.publication import HookSummary, Summary
from restartpoint_reference.transitions.structural import StartSummary, StructuralFailure
from restartpoint_reference.vocabulary.registers import FileOperations

NO_FILES: Final = FileOperations(read=(), written=(), edited=())


def _cuts(at: Moment) -> Iterator[CompactionCut]:
    """The newest message is retained, or it is a split turn's; of one message, all is summarised (§3.2).

    A split turn takes two requests.
    """
    count = len(compaction_places(at.view.state, at.view.leaf))
    older = max(count - 1, 1)
    yield CompactionCut(summarized=older, prefix=0, tokens_before=count, file_ops=NO_FILES)
    if count > 1:
        yield CompactionCut(summarized=older, prefix=1, tokens_before=count, file_ops=NO_FILES)


def _accept_compaction(at: Moment) -> Iterator[Inputs]:
    for cut in _cuts(at):
        yield AcceptCompaction(
            operation_id=at.mint(), task_id=at.mint(1), started_at=0, settings=COMPACTION, cut=cut
        )  # fmt: skip


def _compact(at: Moment) -> Iterable[Inputs]:
    return (Compact(task_id=at.mint(), cut=cut) for cut in _cuts(at))


def _overflow(at: Moment) -> Iterator[Inputs]:
    for said in at.alphabet.responses:
        for cut in _cuts(at):
            for cut_short in (False, True):
                yield SettleOverflow(task_id=at.mint(), cut=cut, response=said, cut_short=cut_short)


def _targets(at: Moment) -> list[str | None]:
    return [None, *sorted(at.view.state.entries, key=lambda key: at.view.state.entries[key].seq)]


def _accept_navigation(at: Moment) -> Iterator[Inputs]:
    for target in _targets(at):
        yield AcceptNavigation(operation_id=at.mint(), started_at=0, target_id=target)
        yield AcceptNavigation(operation_id=at.mint(), started_at=0, target_id=target, label="here")


def _accept_summarized(at: Moment) -> Iterator[Inputs]:
    for target in _targets(at):
        count = len(branch_places(at.view.state, at.view.leaf, target))
        yield AcceptSummarizedNavigation(
            operation_id=at.mint(),
            started_at=0,
            target_id=target,
            task_id=at.mint(1),
            cut=BranchCut(chosen=tuple(range(count)), total_tokens=count, file_ops=NO_FILES),
        )


def _start_summary(at: Moment) -> Iterator[Inputs]:
    yield StartSummary(result_entry_id=at.mint(), stream_options={}, retry_policy=at.alphabet.policy)


def _request(at: Moment) -> Iterator[Inputs]:
    yield IntendSummaryRequest(usage_id=at.mint())


def _request_usage(_: Moment) -> Iterator[Inputs]:
    yield SettleSummaryRequest(usage=usage(1))


def _retry(_: Moment) -> Iterator[Inputs]:
    yield RetrySummary(error_message="overloaded", not_before=1000)


def _failure(_: Moment) -> Iterator[Inputs]:
    yield StructuralFailure(error_message="failed")


def _summary(_: Moment) -> Iterator[Inputs]:
    yield Summary(summary="so far")


def _hook_summary(at: Moment) -> Iterator[Inputs]:
    yield HookSummary(entry_id=at.mint(), summary="so far")
    yield HookSummary(entry_id=at.mint(), summary="so far", usage_id=at.mint(1), usage=usage(1))


STRUCTURAL: Final[Mapping[str, Choice]] = {
    "accept_compaction": _accept_compaction, "begin_threshold_compaction": _compact, "settle_overflow": _overflow,
    "accept_navigation": _accept_navigation, "accept_summarized_navigation": _accept_summarized,
    "start_summary": _start_summary, "intend_summary_request": _request, "settle_summary_request": _request_usage,
    "retry_summary": _retry, "fail_structural": _failure, "fail_structural_in_run": _failure,
    "recover_exhausted_summary": _failure, "decline_overflow": _failure, "publish_compaction": _summary,
    "publish_compaction_in_run": _summary, "publish_navigation": _summary,
    "publish_hook_compaction": _hook_summary, "publish_hook_compaction_in_run": _hook_summary,
    "publish_hook_navigation": _hook_summary,
}  # fmt: skip
