"""The coverage check fails exactly when a landed section lacks a core item."""

from ci.catalogue import Landed, Requirement, known_ids, load_landed, load_requirements
from ci.coverage_of_requirements import problems, summarise


def requirement(id: str, *, section: str = "1.1", priority: str = "core") -> Requirement:
    return Requirement(id=id, catalogue="storage", section=section, priority=priority, check=None)


def check(*requirements: Requirement, landed: Landed, covered: set[str]) -> list[str]:
    sections = summarise(requirements, landed, covered)
    return problems(sections, requirements, landed, covered)


LANDED = Landed(sections=frozenset({("storage", "1.1")}), exempt={})


def test_a_landed_section_without_a_test_for_a_core_item_fails() -> None:
    (problem,) = check(requirement("A"), requirement("B"), landed=LANDED, covered={"A"})
    assert "covers B" in problem


def test_what_is_not_core_or_not_landed_need_not_be_covered() -> None:
    items = (requirement("A", priority="full"), requirement("B", section="1.2"))
    assert check(*items, landed=LANDED, covered=set()) == []


def test_an_exemption_stands_in_for_a_test_but_not_beside_one() -> None:
    landed = Landed(sections=LANDED.sections, exempt={"A": "a statement of intent"})
    assert check(requirement("A"), landed=landed, covered=set()) == []
    assert check(requirement("A"), landed=landed, covered={"A"}) == ["A is exempt although a test covers it"]


def test_landed_names_only_what_exists() -> None:
    landed = Landed(sections=frozenset({("storage", "9.9")}), exempt={"Z": "gone"})
    assert len(check(requirement("A"), landed=landed, covered=set())) == 2


def test_the_catalogues_read_the_same_by_line_and_by_yaml() -> None:
    requirements = load_requirements()
    assert {one.id for one in requirements} == known_ids()
    assert len(requirements) == len(known_ids())


def test_the_landed_file_is_consistent_with_the_catalogues() -> None:
    requirements, landed = load_requirements(), load_landed()
    assert {(name, section) for name, section in landed.sections} <= {(r.catalogue, r.section) for r in requirements}
