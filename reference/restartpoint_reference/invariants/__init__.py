"""What is true of every durable state (§3.3, §9.1), as named predicates.

Each predicate answers the sentences that say where a state breaks it; none when it holds. ``check`` asks all of them
about a whole state, ``check_commit`` about what one commit touched; `commits` holds what is true of the commit itself.

Of the numbers of §9.1, these are no predicates over a durable state, and hold elsewhere: all-or-none (2) in ``apply``;
reads that fold no history (5), the branch index (10) and the catalogue of gates (23) in the runtime; a parent chain
that never changes (6), since no write changes an entry; one active operation per lane (22) in the live process. That
the conversation needs no operation (8) follows from 11 and 20, whose predicates read none.
"""

from restartpoint_reference.invariants.checking import INVARIANTS, Broken, Invariant, check, check_commit, operations
from restartpoint_reference.invariants.commits import CHANGES

__all__ = ["CHANGES", "INVARIANTS", "Broken", "Invariant", "check", "check_commit", "operations"]
