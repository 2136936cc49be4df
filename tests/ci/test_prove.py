"""Properties of the model are confirmed over all paths, their faulty twins are refuted, and nothing less counts."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from ci.prove import __main__ as command
from ci.prove import page
from ci.prove.analysis import Answer, Verdict, decide
from ci.prove.campaign import Finding, search
from ci.prove.contract import Property, proves
from ci.prove.properties import PROPERTIES, leaf
from restartpoint_reference import TRANSITIONS, Commit, Refusal

QUICK = [found for found in PROPERTIES.values() if found.quick]

Step = Callable[[int], int]


def next_of(number: int) -> int:
    """The next number."""
    return number + 1


def _same(number: int) -> int:
    """The number itself."""
    return number


def _unfinished(number: int) -> int:
    """A number whose spelling is looked at, of which there is no end."""
    return number + len(str(number).replace("x", "")) // 1000 + 1


def _raising(number: int) -> int:
    """No number at all."""
    raise ArithmeticError(f"{number}")


@proves(next_of, section="1.1", twin=_same, symbolic="every integer")
def grows(step: Step, number: int) -> bool:
    """The answer is greater."""
    return step(number) > number


def verdicts(found: Property, *, cpu_seconds: float = 20.0) -> tuple[Verdict, Verdict]:
    proof, refutation = decide(found, cpu_seconds=cpu_seconds)
    return proof.verdict, refutation.verdict


# --- the part of the proofs that is quick


@pytest.mark.parametrize("found", QUICK, ids=[found.name for found in QUICK])
def test_a_quick_property_is_confirmed_and_its_twin_refuted(found: Property) -> None:
    finding = search(found, wall_seconds=240)  # before pytest gives the test up
    assert finding.proof.verdict in (Verdict.CONFIRMED, Verdict.UNDECIDED), finding.to_json()
    assert finding.refutation.verdict in (Verdict.REFUTED, Verdict.UNDECIDED), finding.to_json()
    if not finding.stands:
        pytest.skip(f"undecided in the time given: {finding.proof.words} Twin: {finding.refutation.words}")


def test_the_quick_part_and_the_whole_are_large_enough() -> None:
    assert len(QUICK) >= 10
    assert len(PROPERTIES) >= 20


# --- what counts


def test_a_true_property_is_confirmed_and_a_false_one_refuted() -> None:
    assert verdicts(grows) == (Verdict.CONFIRMED, Verdict.REFUTED)


def test_what_raises_is_neither_confirmed_nor_refuted() -> None:
    assert verdicts(replace(grows, subject=_raising, twin=_raising)) == (Verdict.RAISED, Verdict.RAISED)


def test_a_search_that_does_not_end_is_undecided() -> None:
    assert verdicts(replace(grows, twin=_unfinished), cpu_seconds=1.0)[1] is Verdict.UNDECIDED


def test_a_precondition_that_nothing_fulfils_is_broken() -> None:
    assert verdicts(replace(grows, given=lambda number: number != number))[0] is Verdict.BROKEN


@pytest.mark.parametrize("proof", Verdict)
@pytest.mark.parametrize("refutation", Verdict)
def test_only_confirmed_with_a_refuted_twin_stands(proof: Verdict, refutation: Verdict) -> None:
    first, second = (Answer(verdict=verdict, words="", paths=1, cpu_seconds=0.0) for verdict in (proof, refutation))
    stands = Finding(about=grows, proof=first, refutation=second).stands
    assert stands is ((proof, refutation) == (Verdict.CONFIRMED, Verdict.REFUTED))


def test_a_process_that_breaks_is_reported_with_its_words() -> None:
    finding = search(replace(grows, name="no_such_property"))
    assert finding.proof.verdict is Verdict.BROKEN
    assert "no_such_property" in finding.proof.words


# --- the declarations


@pytest.mark.parametrize("found", PROPERTIES.values(), ids=PROPERTIES)
def test_a_property_says_what_it_claims_for_which_values_and_what_its_twin_does_wrong(found: Property) -> None:
    assert found.claim
    assert found.symbolic
    assert found.fault
    assert found.function.strip(".")
    assert found.subject is not found.twin


def test_every_step_of_the_leaf_is_made_in_some_state() -> None:
    for step in leaf.Step:
        made = [TRANSITIONS[step.value](where.state, "main", step.inputs) for where in leaf.Where]
        assert any(isinstance(answer, Commit) for answer in made), step
        assert any(isinstance(answer, Refusal) for answer in made), step


# --- the command and the page


def test_the_command_prints_findings_and_fails_for_what_does_not_stand(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "no_retry_mends_overflow_or_authentication"
    assert command.main(["--json", name]) == 0
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert finding["property"] == name
    assert finding["proof"]["verdict"] == "confirmed"
    assert finding["twin"]["verdict"] == "refuted"
    monkeypatch.setattr(command, "PROPERTIES", {"grows": grows})
    assert command.main(["grows"]) == 1
    assert "not confirmed" in capsys.readouterr().out


def test_an_unknown_name_is_an_error_of_the_call() -> None:
    assert command.main(["nothing"]) == 2


def test_the_page_lists_every_property_as_it_is_declared() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.text(), "run python -m ci.prove.page"
    for name in PROPERTIES:
        assert page.text().count(f"| `{name}`") == 1
