"""The inputs that the world may choose for each transition, out of a small alphabet."""

from restartpoint_reference.explore.choices.alphabet import Alphabet
from restartpoint_reference.explore.choices.moment import Choice, Moment
from restartpoint_reference.explore.choices.table import CHOICES, choices

__all__ = ["CHOICES", "Alphabet", "Choice", "Moment", "choices"]
