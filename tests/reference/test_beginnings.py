"""What the first state of a forked, imported or seeded session may not show (§2.7, Appendix B)."""

from dataclasses import replace

import pytest

from restartpoint_reference import TRANSITIONS, Commit, Namespace, Observed, State, Unexplained, explain
from restartpoint_reference.transitions.copies import CopiedLane, ForkInto, ImportV3
from restartpoint_reference.transitions.facts import FactAddress, SessionId, SetFact
from restartpoint_reference.transitions.frame import Inputs
from restartpoint_reference.transitions.session import Configuration, CreateLane
from tests.reference.walk import Walk, uid, usage
from tests.reference.walks import runs, sessions
from tests.reference.walks.planted import plant
from tests.reference.walks.runs import CONFIGURATION
from tests.reference.walks.sessions import BRANCH, CUSTOM, E1, E2, E3, E4, LABEL, MAIN, NAME, PARENT, TREE

FORK = ForkInto(entries=BRANCH, facts=(NAME,), lanes=(MAIN,))
IMPORT = ImportV3(entries=TREE, facts=(), leaf_id=E4, usage_id=uid(700, 1))
IDENTITY = SetFact(namespace=Namespace.FACT_CUSTOM, key="session/id", value=uid(1, 1))
OTHER = CopiedLane(name="other", configuration=CONFIGURATION, leaf_id=None)


@pytest.mark.parametrize(
    "name, inputs, guard",
    [
        ("fork_into", ForkInto(entries=(), facts=(), lanes=(replace(MAIN, leaf_id=None),)), "something_is_copied"),
        ("fork_into", replace(FORK, entries=BRANCH[1:]), "parents_come_first"),
        ("fork_into", replace(FORK, entries=BRANCH[::-1]), "parents_come_first"),
        ("fork_into", replace(FORK, facts=(NAME, NAME)), "facts_may_be_copied"),
        ("fork_into", replace(FORK, facts=(replace(LABEL, key=E3),)), "facts_may_be_copied"),
        ("fork_into", replace(FORK, facts=(replace(LABEL, value=1),)), "facts_may_be_copied"),
        ("fork_into", replace(FORK, facts=(IDENTITY,)), "facts_may_be_copied"),
        ("fork_into", replace(FORK, facts=(replace(PARENT, value=None),)), "facts_may_be_copied"),
        ("fork_into", replace(FORK, lanes=()), "lanes_are_whole"),
        ("fork_into", replace(FORK, lanes=(OTHER,)), "lanes_are_whole"),
        ("fork_into", replace(FORK, lanes=(MAIN, MAIN)), "lanes_are_whole"),
        ("fork_into", replace(FORK, lanes=(MAIN, CopiedLane(name="other", leaf_id=E1))), "lanes_are_whole"),
        ("fork_into", replace(FORK, lanes=(MAIN, replace(OTHER, name="a\nb"))), "lanes_are_whole"),
        ("fork_into", replace(FORK, lanes=(replace(MAIN, leaf_id=E3),)), "lanes_are_whole"),
        ("import_v3", replace(IMPORT, entries=TREE[1:]), "parents_come_first"),
        ("import_v3", replace(IMPORT, facts=(CUSTOM,)), "import_has_no_custom_facts"),
        ("import_v3", replace(IMPORT, facts=(replace(LABEL, key=uid(1, 1)),)), "facts_may_be_copied"),
        ("import_v3", replace(IMPORT, leaf_id=uid(1, 1)), "leaf_is_imported"),
        ("ensure_id", SessionId(id=""), "session_has_no_id"),
        ("create_lane", CreateLane(configuration=CONFIGURATION, anchor=None), "session_exists"),
    ],
)
def test_a_beginning_is_held_to_its_guards(name: str, inputs: Inputs, guard: str) -> None:
    transition = TRANSITIONS[name]
    refusal = transition(State.empty(), "main" if transition.takes_lane else None, inputs)
    assert getattr(refusal, "guard", "") == guard


@pytest.mark.parametrize("name, inputs", [("fork_into", FORK), ("import_v3", IMPORT)])
def test_nothing_is_copied_into_a_session_that_exists(name: str, inputs: Inputs) -> None:
    refusal = TRANSITIONS[name](runs.opened().state, None, inputs)
    assert getattr(refusal, "guard", "") == "session_is_new"


def test_the_fork_of_an_empty_source_is_a_new_session() -> None:
    """Of an empty source with a configuration, it is the fork that copies the configuration."""
    walk = Walk()
    walk.take(TRANSITIONS["create_session"])
    assert walk.names == ["create_session"]
    configured = CopiedLane(name="main", configuration=CONFIGURATION, leaf_id=None)
    Walk().take(TRANSITIONS["fork_into"], ForkInto(entries=(), facts=(), lanes=(configured,)))


def test_an_import_accounts_for_the_usage_that_its_entries_display() -> None:
    walk = sessions.imported()
    assert walk.state.usage[uid(700, 1)].usage == usage(input=14, output=9, totalTokens=17)
    assert walk.state.usage[uid(700, 1)].details == {"source": "v3-import"}
    assert sessions.imported_nothing().state.usage[uid(700, 1)].usage == usage()


def test_a_fork_copies_no_ledger_row() -> None:
    walk = Walk()
    commit = TRANSITIONS["fork_into"](walk.state, None, FORK)
    row = TRANSITIONS["import_v3"](walk.state, None, IMPORT)
    assert isinstance(commit, Commit)
    assert isinstance(row, Commit)
    writes = (*commit.writes, row.writes[-1])
    observed = Observed(writes=writes, seqs=tuple(range(1, len(writes) + 1)))
    assert isinstance(explain(walk.state, observed), Unexplained)
    assert not sessions.forked_tree().state.usage


def test_the_identity_of_a_session_is_no_application_fact() -> None:
    state = sessions.seeded_strands().state
    for name, inputs in (
        ("set_fact", IDENTITY),
        ("delete_fact", FactAddress(namespace=CUSTOM.namespace, key=IDENTITY.key)),
    ):
        assert getattr(TRANSITIONS[name](state, None, inputs), "guard", "") == "key_is_not_reserved"
    again = TRANSITIONS["ensure_id"](state, None, SessionId(id=uid(2, 2)))
    assert getattr(again, "guard", "") == "session_has_no_id"


def test_a_strand_is_seeded_once_and_main_without_a_configuration_gets_only_that() -> None:
    seed = Configuration(configuration=CONFIGURATION)
    taken = TRANSITIONS["ensure_strand"](sessions.seeded_strands().state, "main", seed)
    assert getattr(taken, "guard", "") == "from_phase"
    walk = Walk()
    walk.take(TRANSITIONS["create_session"])
    assert getattr(TRANSITIONS["ensure_strand"](walk.state, "main", seed), "guard", "") == "from_phase"
    walk.take(TRANSITIONS["seed_main"], seed)
    assert walk.state.value(Namespace.LANE_CONFIG, "main") == CONFIGURATION.to_json()


def test_a_strand_with_a_leaf_alone_is_not_seeded_over() -> None:
    walk = runs.opened()
    walk.lane = "other"
    stray = plant(walk, (Namespace.LANE_LEAF, "other", E2))
    refusal = TRANSITIONS["ensure_strand"](stray.state, "other", Configuration(configuration=CONFIGURATION))
    assert getattr(refusal, "guard", "") == "lane_has_no_register"
