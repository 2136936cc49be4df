"""What another process does with what the killed one left: look, reopen, resume, and ask again if that failed."""

from __future__ import annotations

from pathlib import Path

import msgspec

from restartpoint.cli.demonstration.commits import (
    CommitRecord,
    Recorder,
    last_seq,
    left_behind,
    read_jsonl,
    read_recorded,
)
from restartpoint.cli.demonstration.scene import (
    GO_ON,
    PROMPT,
    SESSION_ID,
    Backend,
    Stage,
    options,
    repository,
    scripted_models,
)
from restartpoint.cli.inspection import Inspection, inspect_session
from restartpoint.cli.opening import open_file
from restartpoint.contract import OperationOutcome, RunCompleted, RunFailed
from restartpoint.runtime import AgentHarness
from restartpoint.session import Session

__all__ = ["Step", "all_commits", "finish_the_run", "look", "session_path"]

PROCESS = 2


class Step(msgspec.Struct, frozen=True):
    """A call of the recovering process, and what came of it."""

    call: str
    outcome: str


def session_path(stage: Stage, backend: Backend) -> Path:
    """The file of the demo's session."""
    return repository(stage, backend, process=PROCESS).path_of(SESSION_ID)


async def look(stage: Stage, backend: Backend) -> Inspection | None:
    """The session as it lies on disk, read without a claim; None when it was never created."""
    path = session_path(stage, backend)
    if not path.exists():
        return None
    async with open_file(path) as file:
        return await inspect_session(file)


async def finish_the_run(stage: Stage, backend: Backend) -> tuple[Step, ...]:
    """Open the session and bring the prompt to a completed run: resume what is open, prompt what is not there."""
    async with repository(stage, backend, process=PROCESS) as sessions:
        recorder = Recorder(stage.commits, PROCESS)
        if session_path(stage, backend).exists():
            session = await sessions.open(SESSION_ID)
            steps = [Step(f'repository.open("{SESSION_ID}")', "the session is open")]
        else:
            session = await sessions.create(id=SESSION_ID)
            await recorder.created(session)
            steps = [Step(f'repository.create("{SESSION_ID}")', "there was no session: nothing had happened yet")]
        session.on_commit(recorder)
        return (*steps, *await _drive(session, stage))


async def _drive(session: Session, stage: Stage) -> list[Step]:
    async with AgentHarness.open(session, options(stage, scripted_models(PROCESS))) as harness:
        last = await harness.get_last_result()
        if harness.suspended:
            outcome = await harness.resume()
            steps = [Step("harness.resume()", _words(outcome))]
        elif last is not None:
            return [Step("harness.get_last_result()", f"the run had {last.outcome} before the process died")]
        else:
            outcome = await harness.prompt(PROMPT)
            steps = [Step("harness.prompt(PROMPT)", f"it had not been accepted; {_words(outcome)}")]
        if isinstance(outcome, RunFailed):
            again = await harness.prompt(GO_ON)
            steps.append(Step(f'harness.prompt("{GO_ON}")', _words(again)))
        return steps


def _words(outcome: OperationOutcome) -> str:
    match outcome:
        case RunCompleted():
            return "the run completed"
        case RunFailed(error=error):
            return f"the run failed: {error.message}"
        case _:
            return f"unexpected: {type(outcome).__name__}"


def all_commits(stage: Stage, backend: Backend, found: Inspection | None) -> list[CommitRecord]:
    """Every commit in order. ``found`` is the session as the killed process left it.

    A JSONL file holds them all. SQLite keeps no history: there they are what the processes were told of, and the one
    that nobody was told of is made up from what it left behind.
    """
    told = read_recorded(stage.commits)
    if backend == "jsonl":
        return read_jsonl(session_path(stage, backend), told)
    before = [record for record in told if record.process != PROCESS]
    after = [record for record in told if record.process == PROCESS]
    known = last_seq(before[-1]) if before else 0
    rest = [] if found is None else left_behind(found.entries, found.registers, found.usage, after=known)
    return [*before, *([CommitRecord(process=1, writes=rest, told=False)] if rest else []), *after]
