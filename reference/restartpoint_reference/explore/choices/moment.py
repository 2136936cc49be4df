"""What a choice knows: the lane, what the world may say, and the ids that are minted now.

An id names the moment at which it was minted, the session's next sequence number: no earlier commit can have minted it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from restartpoint_reference.explore.choices.alphabet import Alphabet
from restartpoint_reference.transitions.frame import Inputs, View


@dataclass(frozen=True, kw_only=True)
class Moment:
    """A lane, what the world may say, and whether the process that made the pending effect is gone."""

    view: View
    alphabet: Alphabet
    orphaned: bool

    def mint(self, tail: int = 0) -> str:
        """A new id; the tail tells apart those of one commit."""
        return minted(self.view.state.next_seq, tail)


Choice: TypeAlias = Callable[[Moment], Iterable[Inputs]]
"""The inputs that the world may choose for one transition; a guard may still forbid some of them."""


def minted(time: int, tail: int) -> str:
    """A UUIDv7 of this time (§1.2)."""
    prefix = f"{time:012x}"
    return f"{prefix[:8]}-{prefix[8:]}-7000-8000-{tail:012x}"
