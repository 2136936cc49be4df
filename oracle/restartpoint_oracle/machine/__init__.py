"""State machines that hold implementations to the model over random calls."""

from restartpoint_oracle.machine.lockstep import Lockstep
from restartpoint_oracle.machine.storage import RULES, StorageMachine, run_storage_machine

__all__ = ["RULES", "Lockstep", "StorageMachine", "run_storage_machine"]
