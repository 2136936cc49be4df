"""Bounded exhaustive search of the model: every state within bounds, every commit explained back (§9)."""

from restartpoint_reference.explore.search import Counterexample, Report, search
from restartpoint_reference.explore.slices import SLICES
from restartpoint_reference.explore.world import Slice

__all__ = ["SLICES", "Counterexample", "Report", "Slice", "search"]
