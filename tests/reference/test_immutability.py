"""What commits of the model may change: registers alone, a leaf to a new entry, queued content whole (§0.3, §2.2)."""

from collections.abc import Callable, Iterator
from dataclasses import fields

import pytest

from restartpoint_reference import TRANSITIONS as T
from restartpoint_reference import DeleteRegister, InsertEntry, Namespace, SetRegister, State, View
from restartpoint_reference.transitions.frame import OPEN
from restartpoint_reference.transitions.queues import QueuedId, QueuedMessage
from restartpoint_reference.vocabulary.states import NavigationState
from tests.reference.walk import Step, Walk, uid, user
from tests.reference.walks import SCENARIOS
from tests.reference.walks.runs import accepted, opened, queues_and_facts

BEGINNINGS = ("create_session", "create_lane", "ensure_strand", "fork_into", "import_v3")
"""The commits that give a lane its first leaf."""
FIRST, SECOND, THIRD = uid(300, 1), uid(300, 2), uid(300, 3)


def transits(walk: Walk) -> Iterator[tuple[Step, State]]:
    """Each commit with the state after it."""
    after = [*(step.before for step in walk.steps[1:]), walk.state]
    return zip(walk.steps, after, strict=True)


@pytest.mark.covers("ST-1.1-10", "ST-1.1-08", "ST-1.1-16", "ST-1.2-09")
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_commits_add_entries_and_rows_and_change_registers_alone(scenario: Callable[[], Walk]) -> None:
    for step, after in transits(scenario()):
        for before_rows, after_rows in ((step.before.entries, after.entries), (step.before.usage, after.usage)):
            for key in before_rows:
                assert after_rows[key] == before_rows[key], step.commit.name
        kinds = {type(write).__name__ for write in step.commit.writes}
        assert kinds <= {"InsertEntry", "InsertUsage", "SetRegister", "DeleteRegister"}


@pytest.mark.covers("ST-2.3-04")
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_leaf_moves_only_onto_an_entry_of_the_same_commit_or_to_where_its_lane_navigates(
    scenario: Callable[[], Walk],
) -> None:
    moved = 0
    for step, _ in transits(scenario()):
        for write in step.commit.writes:
            if isinstance(write, SetRegister) and write.namespace is Namespace.LANE_LEAF:
                inserted = [one.entry.id for one in step.commit.writes if isinstance(one, InsertEntry)]
                if step.commit.name in BEGINNINGS:
                    assert step.before.register(Namespace.LANE_LEAF, write.key) is None
                else:
                    state = View(step.before, write.key).phase in OPEN and View(step.before, write.key).operation_state
                    target = [state.target_id] if isinstance(state, NavigationState) else []
                    assert write.value in [*inserted[-1:], *target], step.commit.name
                    moved += 1
    assert moved > 0


DISCARDING = frozenset({
    "cancel_next_run", "cancel_queued", "finish_aborted_run", "finish_aborted_deferred",
    "finish_aborted_compaction_in_run", "finalize_externally",
})  # fmt: skip
"""The commits in which queued content dies without a place: it is withdrawn, or its operation ends first."""


@pytest.mark.covers("ST-2.2-06", "ST-1.4-11")
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_at_every_boundary_queued_content_is_a_register_or_an_entry_and_never_both(
    scenario: Callable[[], Walk],
) -> None:
    walk = scenario()
    seen: set[str] = set()
    for step, after in transits(walk):
        waiting = set(after.namespaces[Namespace.PENDING_ENTRY])
        cancelled = {
            write.key
            for write in step.commit.writes
            if isinstance(write, DeleteRegister) and write.namespace is Namespace.PENDING_ENTRY
        } - after.entries.keys()
        assert step.commit.name in DISCARDING or not cancelled
        seen = (seen | waiting) - cancelled
        for key in seen:
            assert (key in waiting) != (key in after.entries), step.commit.name


def queued() -> Walk:
    """Three items that wait for the next run."""
    walk = opened()
    for key in (FIRST, SECOND, THIRD):
        walk.take(T["enqueue_next_run"], QueuedMessage(id=key, message=user(key)))
    return walk


@pytest.mark.covers("ST-2.2-07")
def test_what_was_cancelled_never_becomes_an_entry_and_the_rest_does_under_its_own_id() -> None:
    walk = queued()
    walk.take(T["cancel_next_run"], QueuedId(id=SECOND))
    assert SECOND not in walk.state.namespaces[Namespace.PENDING_ENTRY]
    walk.take(T["accept_run"], accepted(captured=2))
    assert [key in walk.state.entries for key in (FIRST, SECOND, THIRD)] == [True, False, True]
    assert not walk.state.namespaces[Namespace.PENDING_ENTRY]


def test_the_scenarios_queue_cancel_and_place() -> None:
    assert {"enqueue_next_run", "cancel_next_run", "accept_run"} <= set(queues_and_facts().names)


@pytest.mark.covers("ST-0.2-01")
def test_a_session_is_its_entries_its_ledger_and_registers_of_lanes_operations_waiting_content_and_facts() -> None:
    """Operations and waiting content are owned by lanes; the next number and the statistics follow from the rows."""
    assert {field.name for field in fields(State)} == {"entries", "namespaces", "usage", "next_seq", "stats"}
    assert {str(namespace).partition(".")[0] for namespace in Namespace} == {"lane", "op", "pending", "fact"}
    state = queues_and_facts().state
    rebuilt = State.from_parts(
        entries=[entry.to_json() for entry in state.entries.values()],
        registers=[one.to_json() for held in state.namespaces.values() for one in held.values()],
        usage=[row.to_json() for row in state.usage.values()],
    )
    assert (rebuilt.stats, rebuilt.entries, rebuilt.usage) == (state.stats, state.entries, state.usage)
