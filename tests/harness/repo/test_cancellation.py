"""A caller that is cancelled anywhere in a write leaves all of it or none, and a session that goes on working."""

import asyncio

import anyio
import anyio.lowlevel
import pytest

from restartpoint.repo import SessionRepository
from restartpoint.session import Session, SessionMutator
from tests.harness.session.stage import Commits, say

STEPS = range(8)


async def check(session: Session, commits: Commits) -> None:
    """The session holds whole appends only, every one announced, and takes more."""
    entries = await session.find_entries()
    assert await session.get_leaf_id() == (entries[0].id if entries else None)
    assert len(commits.seen) == len(entries) <= 1
    assert (await session.get_stats()).message_count == len(entries)
    following = await session.append_message(say("next"))
    assert [entry.id for entry in await session.find_entries_on_branch()] == [
        following, *(entry.id for entry in entries)
    ]  # fmt: skip


@pytest.mark.covers("ST-1.4-23")
@pytest.mark.parametrize("steps", STEPS)
async def test_an_append_that_is_cancelled_after_any_step_is_whole(repository: SessionRepository, steps: int) -> None:
    async with await repository.create() as session:
        commits = Commits(session)
        async with anyio.create_task_group() as group:
            group.start_soon(session.append_message, say("x"))
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
        await check(session, commits)


@pytest.mark.covers("ST-1.4-23")
@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_append_that_asyncio_itself_cancels_is_whole(repository: SessionRepository, steps: int) -> None:
    async with await repository.create() as session:
        task = asyncio.create_task(session.append_message(say("x")))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        entries = await session.find_entries()
        assert await session.get_leaf_id() == (entries[0].id if entries else None)
        assert (await session.get_stats()).message_count == len(entries)
        await session.append_message(say("next"))
        assert len(await session.find_entries()) == len(entries) + 1


@pytest.mark.parametrize("steps", STEPS)
async def test_a_job_behind_a_cancelled_one_sees_what_that_one_left(repository: SessionRepository, steps: int) -> None:
    async with await repository.create() as session:
        seen: list[int] = []

        async def count(mutator: SessionMutator) -> None:
            leaf = await session.get_leaf_id()
            seen.append(0 if leaf is None else 1)

        async with anyio.create_task_group() as group, anyio.create_task_group() as first:
            first.start_soon(session.append_message, say("x"))
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            group.start_soon(session.mutate, "main", count)
            first.cancel_scope.cancel()
        assert seen == [len(await session.find_entries())]
