"""The judge: holds an implementation to the model, commit by commit.

``conformance`` has the suites that any backend passes, ``machine`` the state machines, ``crash`` the crash sweeps,
``fixtures`` what pytest needs.
Needs the extra ``restartpoint[oracle]``.
"""

from restartpoint_oracle.content import content_of_model, content_of_storage, state_of_content
from restartpoint_oracle.crash import Scenario, SweepReport, sweep
from restartpoint_oracle.delegating import DelegatingStorage
from restartpoint_oracle.doubles import ManualClock, RaisingFaults, counted_bytes, counted_ids
from restartpoint_oracle.effects import (
    EffectLog,
    EffectStarted,
    WrongSettlement,
    check_growth,
    check_request_messages,
    check_requests,
    check_sandwich,
)
from restartpoint_oracle.errors import (
    ClauseBroken,
    ContentDiffers,
    EffectOutOfOrder,
    InvariantViolated,
    JudgeViolation,
    LockstepBroken,
    OracleFinding,
    RequestDiffers,
)
from restartpoint_oracle.intents import EffectKind, Intent
from restartpoint_oracle.judge import Judge, Judged, lanes_of
from restartpoint_oracle.judged import JudgedRepository, JudgedStorage
from restartpoint_oracle.logged import LoggedModels, LoggedTimers, LoggedTool, log_hooks, logged_hook
from restartpoint_oracle.wire import Json, JsonObject

__all__ = [
    "ClauseBroken", "ContentDiffers", "DelegatingStorage", "EffectKind", "EffectLog", "EffectOutOfOrder",
    "EffectStarted", "Intent", "InvariantViolated", "Json", "JsonObject", "Judge", "JudgeViolation", "Judged",
    "JudgedRepository", "JudgedStorage", "LockstepBroken", "LoggedModels", "LoggedTimers", "LoggedTool",
    "ManualClock", "OracleFinding", "RaisingFaults", "RequestDiffers", "Scenario", "SweepReport", "WrongSettlement",
    "check_growth", "check_request_messages", "check_requests", "check_sandwich", "content_of_model",
    "content_of_storage", "counted_bytes", "counted_ids", "lanes_of", "log_hooks", "logged_hook", "state_of_content",
    "sweep",
]  # fmt: skip
