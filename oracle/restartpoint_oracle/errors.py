"""What the oracle raises: one class per kind of finding, each an ``AssertionError`` which any test runner shows."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = [
    "ClauseBroken",
    "ContentDiffers",
    "EffectOutOfOrder",
    "InvariantViolated",
    "JudgeViolation",
    "LockstepBroken",
    "OracleFinding",
    "RequestDiffers",
    "Unreadable",
]


class OracleFinding(AssertionError):
    """The judged implementation departs from what it must do."""


class ClauseBroken(OracleFinding):
    """A conformance check found that a clause does not hold; the message names what was expected and what was found."""


class LockstepBroken(OracleFinding):
    """A backend answered differently from the model of storage, or differently from another backend."""


class JudgeViolation(OracleFinding):
    """No transition of the model makes the commit; ``differences`` say where it departs from the nearest one."""

    def __init__(self, transition: str | None, section: str, differences: Sequence[str], *, lane: str | None) -> None:
        self.transition, self.section = transition, section
        self.differences, self.lane = tuple(differences), lane
        head = "the commit is no transition of the model"
        if transition is not None:
            head = f"the commit is not {transition} (§{section})"
        where = "" if lane is None else f" on lane {lane!r}"
        super().__init__("\n  - ".join((head + where, *self.differences)))


class InvariantViolated(OracleFinding):
    """A committed state breaks a numbered invariant; ``transition`` is the commit that led to it (§9.1)."""

    def __init__(self, transition: str, violations: Sequence[str]) -> None:
        self.transition, self.violations = transition, tuple(violations)
        super().__init__("\n  - ".join((f"after {transition} the state breaks an invariant (§9.1)", *self.violations)))


class ContentDiffers(OracleFinding):
    """A storage answers other rows than were committed to it (§1.5)."""


class EffectOutOfOrder(OracleFinding):
    """An effect began before its intent was durable, or the next phase before its settlement was (§0.3, §9.3)."""


class RequestDiffers(OracleFinding):
    """A provider request does not carry the messages that the model projects (§2.5)."""


class Unreadable(Exception):
    """A file that cannot be audited, or not from ``line`` (from 1) on; ``reason`` says what it is instead."""

    def __init__(self, reason: str, *, line: int | None = None) -> None:
        self.reason, self.line = reason, line
        super().__init__(reason if line is None else f"line {line}: {reason}")
