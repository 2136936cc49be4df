"""Many properties, each put to CrossHair in a process of its own, and what the whole amounts to."""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ci.prove.analysis import Answer, Verdict, answer_of
from ci.prove.contract import Property

__all__ = ["WALL_SECONDS", "Finding", "run", "search"]

ROOT: Final = Path(__file__).resolve().parents[2]

WALL_SECONDS: Final = 500.0
"""When a process is given up; its verdicts are then undecided."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What was found out about one property: about the function of the model, and about its faulty twin."""

    about: Property
    proof: Answer
    refutation: Answer

    @property
    def stands(self) -> bool:
        """Whether the property is confirmed over all paths and its twin is refuted by it."""
        return self.proof.verdict is Verdict.CONFIRMED and self.refutation.verdict is Verdict.REFUTED

    def to_json(self) -> dict[str, object]:
        """The finding as a JSON object."""
        found = self.about
        return {
            "function": found.function,
            "property": found.name,
            "section": found.section,
            "claim": found.claim,
            "symbolic": found.symbolic,
            "fixed": found.fixed,
            "proof": self.proof.to_json(),
            "twin": {"fault": found.fault, **self.refutation.to_json()},
            "stands": self.stands,
        }


def run(properties: Iterable[Property], workers: int) -> Iterator[Finding]:
    """The findings about these properties in their order, as they come, with so many processes at a time."""
    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(search, properties)


def search(found: Property, *, wall_seconds: float = WALL_SECONDS) -> Finding:
    """The finding about one property, by a new process that is given so many seconds of the clock."""
    command = [sys.executable, "-m", "ci.prove.worker", found.name]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=wall_seconds, check=False)
    except subprocess.TimeoutExpired:
        given_up = _no_answer(Verdict.UNDECIDED, f"given up after {wall_seconds} s")
        return Finding(about=found, proof=given_up, refutation=given_up)
    if done.returncode != 0:
        broken = _no_answer(Verdict.BROKEN, done.stderr.strip()[-2000:])
        return Finding(about=found, proof=broken, refutation=broken)
    proof, refutation = json.loads(done.stdout.splitlines()[-1])
    return Finding(about=found, proof=answer_of(proof), refutation=answer_of(refutation))


def _no_answer(verdict: Verdict, words: str) -> Answer:
    return Answer(verdict=verdict, words=words, paths=0, cpu_seconds=0.0)
