"""One property put to CrossHair, in this process: is it confirmed, and is its faulty twin refuted?"""

import inspect
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from time import process_time
from typing import Final

from crosshair.core_and_libs import analyze_function, run_checkables
from crosshair.options import AnalysisOptionSet
from crosshair.register_contract import register_contract
from crosshair.statespace import MessageType

from ci.prove.contract import Property

__all__ = ["CPU_SECONDS", "Answer", "Verdict", "answer_of", "decide"]

CPU_SECONDS: Final = 100.0
"""How long one search may take, in seconds of processor time: a busy machine does not change a verdict."""


class Verdict(StrEnum):
    """What a search found out."""

    CONFIRMED = "confirmed"
    """Every path was followed to its end, and the property held on each."""
    REFUTED = "refuted"
    """There is an input for which the property does not hold."""
    RAISED = "raised"
    """There is an input for which the function or the property raises: no proof, and no refutation of a twin either."""
    UNDECIDED = "undecided"
    """No counterexample was found, and some path was not followed to its end. Counts as nothing."""
    BROKEN = "broken"
    """The contract itself is wrong: it cannot be read, or nothing fulfils its precondition."""


_VERDICTS: Final = {
    MessageType.CONFIRMED: Verdict.CONFIRMED,
    MessageType.POST_FAIL: Verdict.REFUTED,
    MessageType.EXEC_ERR: Verdict.RAISED,
    MessageType.CANNOT_CONFIRM: Verdict.UNDECIDED,
}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The verdict about one function, CrossHair's words (a counterexample, if any), and what it took."""

    verdict: Verdict
    words: str
    paths: int
    cpu_seconds: float

    def to_json(self) -> dict[str, object]:
        """The answer as a JSON object."""
        return asdict(self)


def answer_of(words: dict[str, object]) -> Answer:
    """The answer that such an object spells."""
    return Answer(
        verdict=Verdict(str(words["verdict"])),
        words=str(words["words"]),
        paths=int(str(words["paths"])),
        cpu_seconds=float(str(words["cpu_seconds"])),
    )


def decide(found: Property, *, cpu_seconds: float = CPU_SECONDS) -> tuple[Answer, Answer]:
    """What CrossHair finds out about the function, and about its twin by the same property."""
    return _search(found, found.subject, cpu_seconds), _search(found, found.twin, cpu_seconds)


def _search(found: Property, subject: object, cpu_seconds: float) -> Answer:
    contract = _contract(found, subject)
    paths: Counter[str] = Counter()
    options = AnalysisOptionSet(
        analysis_kind=(),  # only the contract that is registered
        per_condition_timeout=cpu_seconds,
        per_path_timeout=cpu_seconds / 2,
        report_all=True,
        stats=paths,
    )
    began = process_time()
    messages = run_checkables(analyze_function(contract, options))
    verdicts = {_VERDICTS.get(message.state, Verdict.BROKEN) for message in messages}
    return Answer(
        verdict=verdicts.pop() if len(verdicts) == 1 else Verdict.BROKEN,
        words="; ".join(message.message for message in messages) or "CrossHair found no contract",
        paths=paths["num_paths"],
        cpu_seconds=round(process_time() - began, 2),
    )


def _contract(found: Property, subject: object) -> Callable[..., bool]:
    """The property of this subject as a function of the symbolic arguments alone, with its contract registered."""

    def contract(*arguments: object, **named: object) -> bool:
        return found.holds(subject, *arguments, **named)

    signature = inspect.signature(found.holds, eval_str=True)
    symbolic = list(signature.parameters.values())[1:]
    made = signature.replace(parameters=symbolic)
    contract.__name__ = contract.__qualname__ = found.name
    vars(contract)["__signature__"] = made
    register_contract(contract, pre=found.given, post=_holds, sig=made, skip_body=False)
    return contract


def _holds(__return__: bool) -> bool:
    return __return__
