"""The process that is killed: ``python -m restartpoint.cli.demonstration.child FOLDER BACKEND KILL_AT``.

It tells its parent through standard output where it stands: one line, ``standing`` when the parent shall kill it now,
``finished`` when it came to its end alive.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import cast

import anyio

from restartpoint.cli.demonstration.commits import Recorder
from restartpoint.cli.demonstration.kill import KillAt, KillingFaults, parse_kill_at
from restartpoint.cli.demonstration.scene import (
    ASKING,
    PROMPT,
    SESSION_ID,
    Backend,
    Stage,
    options,
    repository,
    scripted_models,
)
from restartpoint.providers import ScriptedModels
from restartpoint.runtime import AgentHarness

__all__ = ["FINISHED", "STANDING", "main", "play"]

STANDING = b"standing\n"
FINISHED = b"finished\n"

PROCESS = 1


def main() -> None:
    """Play the scene that the command line names."""
    folder, backend, kill_at = sys.argv[1:]
    anyio.run(play, Stage(Path(folder)), cast("Backend", backend), parse_kill_at(kill_at))
    _tell(FINISHED)


async def play(stage: Stage, backend: Backend, kill: KillAt) -> None:
    """Create the session and run the prompt; returns when nothing killed the process."""
    faults = KillingFaults(kill)
    models = scripted_models(PROCESS, stalls=kill.place == "request")
    async with repository(stage, backend, process=PROCESS, faults=faults) as sessions:
        faults.creating()
        session = await sessions.create(id=SESSION_ID)
        faults.created()
        recorder = Recorder(stage.commits, PROCESS)
        await recorder.created(session)
        faults.announced()
        session.on_commit(recorder)
        session.on_commit(faults.told)
        chosen = options(stage, models, stand=_stand if kill.place == "tool" else lambda: None)
        async with AgentHarness.open(session, chosen) as harness, anyio.create_task_group() as group:
            if kill.place == "request":
                group.start_soon(_stand_in_request, models)
            await harness.prompt(PROMPT)
            group.cancel_scope.cancel()


async def _stand_in_request(models: ScriptedModels) -> None:
    await models.reached(ASKING)
    _stand()


def _stand() -> None:
    """Tell the parent and stand still until it kills; when the parent is gone, so is its end of the pipe."""
    _tell(STANDING)
    os.read(0, 1)
    os._exit(3)


def _tell(line: bytes) -> None:
    os.write(1, line)


if __name__ == "__main__":
    main()
