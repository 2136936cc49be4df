"""Any sequence of calls on two repositories of one place keeps to a model of dictionaries."""

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from restartpoint.errors import RestartpointError
from restartpoint.repo import SessionRepository
from restartpoint.session import Session
from tests.harness.repo.stage import KINDS, maker
from tests.harness.session.stage import StandingClock, say

T = TypeVar("T")
ids = st.sampled_from(["a", "b"])
owners = st.sampled_from([0, 1])


class Repositories(RuleBasedStateMachine):
    """Two owners of one folder (one owner of memory), two session ids; ``texts`` is what each session holds."""

    kind = "jsonl"

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.root = Path(tempfile.mkdtemp())
        # Each owner has a clock of its own, so that their counted ids differ as those of two processes do.
        clocks = [StandingClock(1_700_000_000_000 + number) for number in range(1 if self.kind == "memory" else 2)]
        self.owners: list[SessionRepository] = [maker(self.kind, self.root, clock)() for clock in clocks]
        self.texts: dict[str, list[str]] = {}
        self.open: dict[str, tuple[int, Session]] = {}

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def owner(self, number: int) -> int:
        return number % len(self.owners)

    def refused(self, work: Coroutine[Any, Any, object]) -> str:
        """The name of the error that the call must raise."""
        with pytest.raises(RestartpointError) as caught:
            self.run(work)
        return type(caught.value).__name__

    def in_use(self, id: str, owner: int) -> set[str]:
        return {"SessionOpen"} if self.open[id][0] == owner else {"SessionLocked", "LeaseHeld"}

    @rule(id=ids, owner=owners)
    def create(self, id: str, owner: int) -> None:
        owner = self.owner(owner)
        if id in self.texts:
            assert self.refused(self.owners[owner].create(id=id)) == "SessionExists"
        else:
            self.open[id] = owner, self.run(self.owners[owner].create(id=id))
            self.texts[id] = []

    @rule(id=ids, owner=owners)
    def open_it(self, id: str, owner: int) -> None:
        owner = self.owner(owner)
        if id not in self.texts:
            assert self.refused(self.owners[owner].open(id)) == "SessionNotFound"
        elif id in self.open:
            assert self.refused(self.owners[owner].open(id)) in self.in_use(id, owner)
        else:
            self.open[id] = owner, self.run(self.owners[owner].open(id))

    @rule(id=ids, owner=owners)
    def delete(self, id: str, owner: int) -> None:
        owner = self.owner(owner)
        if id not in self.texts:
            assert self.refused(self.owners[owner].delete(id)) == "SessionNotFound"
        elif id in self.open:
            assert self.refused(self.owners[owner].delete(id)) in self.in_use(id, owner)
        else:
            self.run(self.owners[owner].delete(id))
            del self.texts[id]

    @rule(id=ids)
    def close(self, id: str) -> None:
        if id in self.open:
            self.run(self.open.pop(id)[1].close())

    @rule(id=ids, text=st.text(max_size=2, alphabet="xy"))
    def append(self, id: str, text: str) -> None:
        if id in self.open:
            self.run(self.open[id][1].append_message(say(text)))
            self.texts[id].append(text)

    @rule(id=ids, owner=owners)
    def read(self, id: str, owner: int) -> None:
        owner = self.owner(owner)
        if id not in self.texts:
            assert self.refused(self.owners[owner].open_read_only(id)) == "SessionNotFound"
        else:
            assert self.run(self.count(self.owners[owner], id)) == len(self.texts[id])

    async def count(self, repository: SessionRepository, id: str) -> int:
        async with await repository.open_read_only(id) as reader:
            return (await reader.get_stats()).message_count

    @invariant()
    def every_owner_lists_what_exists(self) -> None:
        for repository in self.owners:
            listing = self.run(repository.list())
            assert [metadata.id for metadata in listing.sessions] == sorted(self.texts)
            assert listing.unreadable == ()

    @invariant()
    def open_sessions_hold_what_was_appended(self) -> None:
        for name, (_, session) in self.open.items():
            found = [entry.payload for entry in reversed(self.run(session.find_entries_on_branch()))]
            assert [getattr(payload, "message", None) for payload in found] == [say(text) for text in self.texts[name]]

    def teardown(self) -> None:
        for repository in self.owners:
            self.run(repository.close())
        self.runner.close()
        shutil.rmtree(self.root)


def machine(kind: str) -> type[Repositories]:
    """The machine over that kind of repository."""
    return type(f"{kind.title()}Repositories", (Repositories,), {"kind": kind})


@pytest.mark.covers("ST-2.8-03", "ST-2.8-15", "ST-2.8-20")
@pytest.mark.parametrize("kind", KINDS)
def test_repositories_keep_to_the_model(kind: str) -> None:
    few = settings(max_examples=30, stateful_step_count=15, deadline=None)
    run_state_machine_as_test(machine(kind), settings=few)
