"""Model vendors. So far the scripted one, which is deterministic."""

from restartpoint.providers.script import (
    Script,
    ScriptedCall,
    ScriptedResponse,
    Step,
    asks,
    fails,
    load_script,
    says,
)
from restartpoint.providers.scripted import (
    SCRIPTED_MODEL,
    Record,
    RecordedRequest,
    ScriptedFailure,
    ScriptedModels,
)

__all__ = [
    "SCRIPTED_MODEL",
    "Record",
    "RecordedRequest",
    "Script",
    "ScriptedCall",
    "ScriptedFailure",
    "ScriptedModels",
    "ScriptedResponse",
    "Step",
    "asks",
    "fails",
    "load_script",
    "says",
]
