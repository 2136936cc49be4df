"""Who is registered, under which id, and until when."""

from typing import Any

import pytest

from restartpoint.contract import BeforeRun, BeforeRunEnd, BeforeRunEndResult, HookName
from restartpoint.errors import InvalidOptions
from tests.harness.hooks.stage import PAYLOADS, hooks_and_failures


def silent(event: Any) -> None:
    return None


@pytest.mark.covers("RT-5.6-02")
@pytest.mark.parametrize("name", ["before_run", "before_resume"])
def test_these_hooks_need_an_id_that_nobody_else_has(name: Any) -> None:
    hooks, _ = hooks_and_failures()
    for missing in (None, ""):
        with pytest.raises(InvalidOptions, match="stable across restarts"):
            hooks.on(name, silent, id=missing)

    remove = hooks.on(name, silent, id="memory")
    with pytest.raises(InvalidOptions, match="'memory' is taken"):
        hooks.on(name, silent, id="memory")
    assert len(hooks.handlers(name)) == 1

    remove()
    hooks.on(name, silent, id="memory")


def test_an_id_is_unique_within_its_hook_only() -> None:
    hooks, _ = hooks_and_failures()
    hooks.on("before_run", silent, id="memory")
    hooks.on("before_resume", silent, id="memory")

    assert hooks.registered("before_run")
    assert hooks.registered("before_resume")


ANONYMOUS: list[HookName] = [
    "before_run_end", "transform_context", "before_request", "before_payload", "after_response", "before_tool",
    "after_tool", "before_compaction", "before_navigation",
]  # fmt: skip


@pytest.mark.parametrize("name", ANONYMOUS)
def test_the_other_hooks_need_no_id(name: Any) -> None:
    hooks, _ = hooks_and_failures()
    hooks.on(name, silent)
    hooks.on(name, silent)

    assert len(hooks.handlers(name)) == 2


def test_a_hook_is_registered_exactly_while_it_has_a_handler() -> None:
    hooks, _ = hooks_and_failures()
    assert not hooks.registered("before_tool")

    first, second = hooks.on("before_tool", silent), hooks.on("before_tool", silent)
    first()
    first()
    assert hooks.registered("before_tool")

    second()
    assert not hooks.registered("before_tool")


@pytest.mark.covers("RT-5.6-01")
async def test_a_removed_handler_is_not_called_and_every_payload_names_lane_and_operation() -> None:
    hooks, _ = hooks_and_failures()
    seen: list[tuple[str, str]] = []

    def handler(event: BeforeRunEnd) -> None:
        seen.append((event.lane, event.run_id))

    remove = hooks.on("before_run_end", handler)
    await hooks.before_run_end(PAYLOADS.before_run_end)
    remove()
    await hooks.before_run_end(PAYLOADS.before_run_end)

    assert seen == [("main", "op-1")]


async def test_a_handler_added_while_the_pipeline_runs_waits_for_the_next_one() -> None:
    hooks, _ = hooks_and_failures()
    calls: list[str] = []

    def late(event: BeforeRunEnd) -> None:
        calls.append("late")

    def first(event: BeforeRunEnd) -> BeforeRunEndResult | None:
        calls.append("first")
        hooks.on("before_run_end", late)
        return None

    hooks.on("before_run_end", first)
    await hooks.before_run_end(PAYLOADS.before_run_end)

    assert calls == ["first"]


async def test_a_handler_may_be_plain_or_async() -> None:
    hooks, _ = hooks_and_failures()
    calls: list[str] = []

    def plain(event: BeforeRun) -> None:
        calls.append("plain")

    async def later(event: BeforeRun) -> None:
        calls.append("async")

    hooks.on("before_run", plain, id="a")
    hooks.on("before_run", later, id="b")
    await hooks.before_run(PAYLOADS.before_run)

    assert calls == ["plain", "async"]
