"""What two writers may do to one operation at once: each pair has exactly two histories (§3.4, §4.3, §4.6)."""

from collections.abc import Callable

import pytest

from restartpoint_reference import TRANSITIONS as T
from restartpoint_reference import Namespace, View
from restartpoint_reference.transitions.frame import Inputs
from restartpoint_reference.transitions.publication import Summary
from restartpoint_reference.transitions.queues import DeferredWrite, IdleWrite, QueuedMessage, admission_of_a_write
from restartpoint_reference.transitions.settlement import Response, SettleToolCalls
from restartpoint_reference.vocabulary.registers import Outcome
from restartpoint_reference.vocabulary.states import CancelRequested, Checkpoint
from tests.reference.walk import NOTHING, Walk, assistant, text, uid, user
from tests.reference.walks import abort, compaction, inbox, runs
from tests.reference.walks.abort import ABORT
from tests.reference.walks.inbox import S1, W1

STOP = Response(response=assistant(text("done")))


@pytest.mark.covers("RT-3.4-03")
@pytest.mark.parametrize(
    "name, inputs",
    [
        ("enqueue_steer", QueuedMessage(id=S1, message=user("rather this"))),
        ("enqueue_follow_up", QueuedMessage(id=S1, message=user("then this"))),
        ("defer_write", DeferredWrite(id=W1, custom_type="note")),
    ],
)
def test_input_and_a_settlement_leave_the_same_state_in_either_order(name: str, inputs: Inputs) -> None:
    first, second = runs.requested(), runs.requested()
    first.take(T[name], inputs)
    first.take(T["settle_stop"], STOP)
    second.take(T["settle_stop"], STOP)
    second.take(T[name], inputs)
    assert first.state.value(Namespace.OP_STATE, runs.RUN) == second.state.value(Namespace.OP_STATE, runs.RUN)


@pytest.mark.covers("RT-3.4-03", "AMB-85")
def test_a_response_is_settled_under_the_control_that_the_commit_finds() -> None:
    settled_first = runs.requested()
    plan = SettleToolCalls(response=runs.two_calls(), result_ids=(runs.C1, runs.C2))
    settled_first.take(T["settle_tool_calls"], plan)
    abort.abort(settled_first)
    assert View(settled_first.state, "main").phase == "tools"
    aborted_first = abort.abort(runs.requested())
    refusal = T["settle_tool_calls"](aborted_first.state, "main", plan)
    assert getattr(refusal, "guard", "") == "control_is_running"
    response = {**runs.two_calls(), "stopReason": "aborted", "errorMessage": "aborted; the model asked for tools"}
    aborted_first.take(T["settle_cancelled"], Response(response=response))
    run = View(aborted_first.state, "main").run
    assert isinstance(run.phase, Checkpoint)
    assert isinstance(run.control, CancelRequested)
    assert run.latest_assistant_entry_id == runs.R1


@pytest.mark.covers("RT-4.6-04")
def test_an_abort_that_comes_after_the_end_finds_no_operation() -> None:
    ended, aborted = inbox.answered(), inbox.answered()
    ended.take(T["finish_run"])
    assert getattr(T["abort_run"](ended.state, "main", ABORT), "guard", "") == "from_phase"
    abort.abort(aborted)
    assert getattr(T["finish_run"](aborted.state, "main", NOTHING), "guard", "") == "control_is_running"


def summarized() -> Walk:
    """A compaction whose summary has just been made."""
    return compaction.requested(compaction.generating(abort.compacting()), uid(620, 1))


def summarized_in_a_run() -> Walk:
    """The same inside a run."""
    return compaction.requested(compaction.generating(compaction.at_threshold()), uid(620, 1))


@pytest.mark.covers("RT-4.6-16", "RT-3.5-11", "RT-3.5-T71")
@pytest.mark.parametrize(
    "lead, marker, publication, end",
    [
        (summarized, "abort_structural", "publish_compaction", "finish_aborted_structural"),
        (summarized_in_a_run, "abort_run", "publish_compaction_in_run", "finish_aborted_compaction_in_run"),
    ],
)
def test_the_publication_decides_whether_structural_work_was_aborted(
    lead: Callable[[], Walk], marker: str, publication: str, end: str
) -> None:
    summary = Summary(summary="a question")
    published, aborted = lead(), lead()
    published.take(T[publication], summary)
    assert compaction.RESULT in published.state.entries
    leaf = View(aborted.state, "main").leaf
    aborted.take(T[marker], ABORT)
    assert getattr(T[publication](aborted.state, "main", summary), "guard", "") == "control_is_running"
    aborted.take(T[end])
    assert compaction.RESULT not in aborted.state.entries
    assert View(aborted.state, "main").leaf == leaf
    last = aborted.state.value(Namespace.LANE_LAST_RESULT, "main")
    assert isinstance(last, dict)
    assert last["outcome"] == Outcome.ABORTED


@pytest.mark.covers("RT-3.11-03", "RT-3.11-T90")
def test_a_tree_write_that_waited_for_a_compaction_lands_after_its_entry() -> None:
    walk = summarized()
    write = IdleWrite(id=W1, custom_type="note")
    assert admission_of_a_write(View(walk.state, "main")) is None
    assert getattr(T["write_idle"](walk.state, "main", write), "guard", "") == "from_phase"
    walk.take(T["publish_compaction"], Summary(summary="a question"))
    walk.take(T["write_idle"], write)
    assert walk.state.entries[W1].parent_id == compaction.RESULT
