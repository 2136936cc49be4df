"""The procedures of a run, one file per phase: straight-line code across its own durable restart points (§4.1)."""

from restartpoint.runtime.procedures.run import Activation, run_operation

__all__ = ["Activation", "run_operation"]
