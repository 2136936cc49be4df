"""Conformance suites: what any implementation of a port must do, one check per clause."""

from restartpoint_oracle.conformance.claims import Raised, equal, holds, raises, same_json
from restartpoint_oracle.conformance.clauses import Check, checks_of, clauses_of, performs
from restartpoint_oracle.conformance.verdicts import Verdict

__all__ = [
    "Check", "Raised", "Verdict", "checks_of", "clauses_of", "equal", "holds", "performs", "raises", "same_json",
]  # fmt: skip
