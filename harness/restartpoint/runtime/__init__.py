"""The production runtime: a harness, its lanes, and the live task of each operation (§4, §5)."""

from restartpoint.runtime.barrier import ActionInfo, Drive
from restartpoint.runtime.harness import AgentHarness, HarnessOptions
from restartpoint.runtime.lane import AgentLane

__all__ = ["ActionInfo", "AgentHarness", "AgentLane", "Drive", "HarnessOptions"]
