"""The mutants that are known to survive, each with the reason; checked in as ``survivors.toml``."""

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ci.mutants.mutant import Mutant
from ci.mutants.trial import Outcome
from ci.mutants.workers import Tried

LIST: Final = Path(__file__).with_name("survivors.toml")
LEAST_KILLED: Final = 0.95

Key = tuple[str, str, str, str]
"""Module, definition, and the line before and after: it stays when lines move."""


@dataclass(frozen=True, kw_only=True)
class Count:
    """The mutants of one module by what became of them; those that cannot be imported are in no percentage."""

    killed: int
    survived: int
    timed_out: int
    unborn: int

    @property
    def share(self) -> float:
        """The killed ones, those that hang included, of all that are born."""
        born = self.killed + self.timed_out + self.survived
        return (self.killed + self.timed_out) / born if born else 1.0


def count(tried: Iterable[Tried]) -> Count:
    """How many ended how."""
    outcomes = [one.outcome for one in tried]
    return Count(
        killed=outcomes.count(Outcome.KILLED),
        survived=outcomes.count(Outcome.SURVIVED),
        timed_out=outcomes.count(Outcome.TIMED_OUT),
        unborn=outcomes.count(Outcome.UNBORN),
    )


def key(mutant: Mutant) -> Key:
    """What names a mutant in the list."""
    return mutant.module, mutant.owner, mutant.before, mutant.after


def reasons(path: Path = LIST) -> dict[Key, str]:
    """The listed reasons."""
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    return {
        (one["module"], one["in"], one["before"], one["after"]): one["reason"].strip() for one in document["survivor"]
    }


def complaints(tried: Sequence[Tried], listed: dict[Key, str]) -> list[str]:
    """Why the run fails: survivors without a reason, reasons without a survivor, too few killed."""
    survived = {key(one.mutant) for one in tried if one.outcome is Outcome.SURVIVED}
    modules = {one.mutant.module for one in tried}
    found = [f"survives without a reason: {_worded(one)}" for one in sorted(survived) if not listed.get(one)]
    found += [
        f"listed, but does not survive: {_worded(one)}"
        for one in sorted(listed)
        if one[0] in modules and one not in survived
    ]
    total = count(tried)
    if total.share < LEAST_KILLED:
        found.append(f"only {total.share:.1%} are killed; at least {LEAST_KILLED:.0%} have to be")
    return found


def _worded(one: Key) -> str:
    module, owner, before, after = one
    return f"{module} {owner}: {before!r} becomes {after!r}"
