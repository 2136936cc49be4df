"""The generated table of transitions is fresh and holds every one."""

from ci import transitions
from restartpoint_reference import NO_COMMIT, TRANSITIONS


def test_the_page_is_what_the_registry_says() -> None:
    assert transitions.PAGE.read_text(encoding="utf-8") == transitions.text(), "run python -m ci.transitions"


def test_every_transition_and_every_quiet_row_has_its_line() -> None:
    lines = transitions.text().splitlines()
    for found in TRANSITIONS.values():
        assert sum(line.startswith(f"| {found.id} | `{found.name}`") for line in lines) == 1
    for key in NO_COMMIT:
        assert sum(line.startswith(f"- **{key}**") for line in lines) == 1
