"""What is injected: clock, timers, ids, chance, blocking work, fault points, the cooperative signal."""

from restartpoint.seams.blocking import BlockingWork, InlineWork, ThreadWork
from restartpoint.seams.clock import Clock, SystemClock, SystemTimers, Timers
from restartpoint.seams.faults import FaultPoint, FaultPoints, NoFaults
from restartpoint.seams.ids import IdGenerator, timestamp_of
from restartpoint.seams.signal import Signal, SignalAborted

__all__ = [
    "BlockingWork",
    "Clock",
    "FaultPoint",
    "FaultPoints",
    "IdGenerator",
    "InlineWork",
    "NoFaults",
    "Signal",
    "SignalAborted",
    "SystemClock",
    "SystemTimers",
    "ThreadWork",
    "Timers",
    "timestamp_of",
]
