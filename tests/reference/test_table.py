"""The table of the transitions: its order, its summaries, and what starts from which phase."""

from restartpoint_reference import TRANSITIONS
from restartpoint_reference.transitions.frame import ANY, NO_LANE
from restartpoint_reference.transitions.table import ALL, FROM_PHASE, WITHOUT_LANE


def test_the_rows_of_operations_come_first_and_then_those_of_the_session_each_by_number() -> None:
    ids = [found.id for found in ALL]
    assert ids[:3] == ["T01", "T02", "T03"]
    assert ids[ids.index("T38") : ids.index("T40")] == ["T38", "T38b", "T39"]
    assert [one for one in ids if one.startswith("S")] == ids[ids.index("S01") :]
    for letter in "TS":
        numbers = [one for one in ids if one.startswith(letter)]
        assert numbers == sorted(numbers)


def test_a_summary_is_the_first_line_of_what_a_transition_says() -> None:
    assert (
        TRANSITIONS["ensure_strand"].summary
        == "A strand is seeded before anything runs: at the root, configured, idle."
    )
    assert TRANSITIONS["import_v3"].summary.startswith("An old file becomes a session")


def test_from_a_phase_start_those_rows_that_name_it() -> None:
    assert tuple(FROM_PHASE) == ANY
    for phase, starting in FROM_PHASE.items():
        assert all(phase in found.phases for found in starting)
        named = [found for found in ALL if phase in found.phases and found.takes_lane]
        assert [found for found in starting if found.takes_lane] == named
    assert {found.name for found in FROM_PHASE[NO_LANE[0]] if not found.takes_lane} == {"fork_into", "import_v3"}
    assert all(not found.takes_lane for found in WITHOUT_LANE)
