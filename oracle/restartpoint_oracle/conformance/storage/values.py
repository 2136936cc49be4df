"""Values come back as they were committed, and what JSON cannot hold is refused (P15, P16; §1.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from restartpoint.contract import (
    FACT_CUSTOM,
    FACT_LABEL,
    FACT_NAME,
    MAX_DEPTH,
    MAX_SAFE_INTEGER,
    OP_TOOL_ARGS,
    PENDING_ENTRY,
    UNSET,
    InsertUsage,
    MessagePayload,
    PendingCustom,
    PendingMessage,
    RegisterDelete,
    RegisterSet,
    Transaction,
    UsageDraft,
    Write,
)
from restartpoint.errors import InvalidJson
from restartpoint_oracle.conformance.claims import equal, holds, raises, same_json
from restartpoint_oracle.conformance.clauses import performs
from restartpoint_oracle.conformance.storage.bench import StorageBench, entry, usage_row
from restartpoint_oracle.content import content_of_storage
from restartpoint_oracle.samples import compaction, custom, message, summary, tool_result, usage

__all__ = ["ValueChecks"]

_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 1.0, 0.0, -0.0, 0.1, 1e300, 5e-324, 1e16, 1e22, MAX_SAFE_INTEGER, -MAX_SAFE_INTEGER,
    float(2**60), "", "null", "1", "plain", "quote \" backslash \\ slash /", "control \u0000\u0001\u001f\u007f",
    "line \u2028 paragraph \u2029 next \u0085 feed \n\r\t", "accents \u00e9 e\u0301", "\u65e5\u672c\u8a9e",
    "astral \U0001f600 \U0010ffff", "\ufeff mark", "\ufffe\uffff", [], {}, [[]], [{}], {"": None},
    {"z": 1, "a": 2, "m": {"y": [1, 1.0, None, True]}}, {"\u2028": "\u2029", "\U0001f600": 0}, [None, False, 0, ""],
)  # fmt: skip
"""What JSON holds; each must come back unchanged, the order of keys included."""


def _nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


def _illegal() -> Iterator[tuple[str, Any]]:
    yield "not a number", float("nan")
    yield "infinity", float("inf")
    yield "negative infinity", float("-inf")
    yield "an integer above the safe ones", MAX_SAFE_INTEGER + 1
    yield "an integer below the safe ones", -MAX_SAFE_INTEGER - 1
    yield "a lone surrogate", "\ud800"
    yield "a lone low surrogate in a text", "a\udfffb"
    yield "bytes", b"bytes"
    yield "a set", {1}
    yield "an object", object()
    yield "a key that is a number", {1: "x"}
    yield "a key that is null", {None: "x"}
    yield "a key with a lone surrogate", {"\ud800": 1}
    yield "an absent marker inside a value", [UNSET]
    yield "a value that nests too deep", _nested(MAX_DEPTH + 5)


def _places(value: Any) -> Iterator[tuple[str, Write]]:
    """Every place of a transaction that holds free JSON."""
    yield "fact.custom", RegisterSet(FACT_CUSTOM, "k", value)
    yield "inside fact.custom", RegisterSet(FACT_CUSTOM, "k", {"a": [0, {"b": value}]})
    yield "op.tool_args", RegisterSet(OP_TOOL_ARGS, "op-1:s1:0", {"argument": value})
    yield "pending message", RegisterSet(PENDING_ENTRY, "e-9", PendingMessage(payload={"role": "x", "content": value}))
    yield "pending custom", RegisterSet(PENDING_ENTRY, "e-9", PendingCustom(custom_type="note", payload=value))
    yield "message", entry("n-1", None, MessagePayload(message={"role": "user", "content": value}))
    yield "unknown field of an entry", entry("n-1", None, message(newer=value))
    yield "custom data", entry("n-1", None, custom(data=value))
    yield "compaction details", entry("n-1", None, compaction(details=value))
    yield "retained tail", entry("n-1", None, compaction(retained_tail=[{"role": "user", "content": value}]))
    yield "summary details", entry("n-1", None, summary("e-1", details={"inside": value}))
    yield "usage", usage_row("n-1", {"input": value})
    yield "usage details", InsertUsage(UsageDraft(id="n-1", usage=usage(), details=value))


class ValueChecks:
    """Checks of what is stored inside the rows."""

    @performs("P15")
    async def test_p15_json_values_come_back_unchanged_in_every_place(self, bench: StorageBench) -> None:
        for number, value in enumerate(_VALUES):
            await bench.commit(
                RegisterSet(FACT_CUSTOM, f"k{number}", value),
                RegisterSet(OP_TOOL_ARGS, f"op-1:s1:{number}", {"argument": value}),
                RegisterSet(PENDING_ENTRY, f"p{number}", PendingCustom(custom_type="note", payload=value)),
                RegisterSet(PENDING_ENTRY, f"q{number}", PendingMessage(payload={"role": "x", "content": value})),
                entry(f"a{number}", None, MessagePayload(message={"role": "user", "content": value, "later": value})),
                entry(f"b{number}", f"a{number}", custom(data=value)),
                entry(f"c{number}", f"b{number}", compaction(details=value)),
                entry(f"d{number}", f"c{number}", summary(f"c{number}", details=value)),
                InsertUsage(UsageDraft(id=f"u{number}", usage={**usage(), "later": value}, details=value)),
            )
        await bench.holds_exactly_what_was_committed()
        await bench.reopen()
        await bench.holds_exactly_what_was_committed("reopened")

    @performs("P15", "ST-1.1-13", "ST-1.1-14", "ST-1.1-15", "ST-1.1-17")
    async def test_p15_absent_and_null_stay_apart(self, bench: StorageBench) -> None:
        await bench.commit(
            entry("a", None, custom()), entry("b", "a", custom(data=None)),
            entry("c", "b", compaction()), entry("d", "c", compaction(details=None, usage=usage(1))),
            entry("e", "d", summary("d")), entry("f", "e", summary("d", details=None, usage=usage(1))),
            InsertUsage(UsageDraft(id="u-1", usage=usage())),
            InsertUsage(UsageDraft(id="u-2", usage=usage(), details=None)),
            InsertUsage(UsageDraft(id="u-3", usage=usage(), entry_id="a", adjustment=True, details={"x": None})),
            RegisterSet(PENDING_ENTRY, "p", PendingCustom(custom_type="note")),
            RegisterSet(PENDING_ENTRY, "q", PendingCustom(custom_type="note", payload=None)),
            RegisterSet(FACT_CUSTOM, "null", None),
        )  # fmt: skip
        for about in ("as committed", "reopened"):
            await bench.holds_exactly_what_was_committed(about)
            held = await content_of_storage(bench.storage)
            rows = cast("list[dict[str, object]]", held["usage"])
            equal([("details" in row, "entryId" in row) for row in rows], [
                (False, False), (True, False), (True, True)], f"fields that are present, {about}")  # fmt: skip
            equal([row["adjustment"] for row in rows], [False, False, True], f"the flags, {about}")
            custom_rows = cast("list[dict[str, object]]", held["entries"])[:2]
            equal(["data" in row for row in custom_rows], [False, True], f"data of custom entries, {about}")
            await bench.reopen()

    @performs("P15", "ST-1.1-07")
    async def test_p15_every_kind_of_entry_keeps_its_fields_and_unknown_ones(self, bench: StorageBench) -> None:
        later: dict[str, Any] = {"laterField": {"x": [1.0]}, "another": None}
        await bench.commit(
            entry("a", None, message(**later)),
            entry("b", "a", MessagePayload(message={"role": "someDay", "shape": {"of": ["another", 2.50]}})),
            entry("c", "b", tool_result(terminate=True)),
            entry("d", "c", tool_result()),
            entry("e", "d", compaction(retained_tail=[{"role": "user", "unknown": 1}], usage=usage(3), extra=later)),
            entry("f", "e", summary("d", from_hook=True, extra=later)),
            entry("g", "f", custom("my/type", data={"k": 0}, extra=later)),
        )
        await bench.holds_exactly_what_was_committed()
        held = cast("list[dict[str, object]]", (await content_of_storage(bench.storage))["entries"])
        equal([row.get("terminate") for row in held], [None, None, True, None, None, None, None], "terminate")
        equal([row.get("customType") for row in held], [None] * 6 + ["my/type"], "customType only on custom entries")
        await bench.reopen()
        await bench.holds_exactly_what_was_committed("reopened")

    @performs("P15", "ST-1.1-03", "ST-1.1-05")
    async def test_p15_entries_carry_the_timestamp_of_their_commit(self, bench: StorageBench) -> None:
        bench.clock.advance(5_000)
        first = await bench.commit(entry("a", None, message()), entry("b", "a", message()))
        equal(first.timestamp, bench.clock.now_ms(), "the timestamp of the commit")
        bench.clock.advance(-9_000)
        second = await bench.commit(entry("c", "b", message()))
        await bench.reopen()
        found = await bench.storage.get_entries(["a", "b", "c"])
        equal(
            [found[key].timestamp for key in "abc"], [first.timestamp, first.timestamp, second.timestamp], "timestamps"
        )
        equal([found[key].parent_id for key in "abc"], [None, "a", "b"], "parents")

    @performs("P15")
    async def test_p15_ids_and_keys_are_any_text(self, bench: StorageBench) -> None:
        ids = ("plain", "with space", "%", "_", "'; --", '"', "\u2028", "\U0001f600", "\u0000", "nul\u0000inside", "0")
        parent: str | None = None
        for key in ids:
            await bench.commit(entry(key, parent, message(key)), RegisterSet(FACT_LABEL, key, key))
            parent = key
        await bench.holds_exactly_what_was_committed()
        found = await bench.storage.get_entries(ids)
        equal(sorted(found), sorted(ids), "exact reads by those ids")
        await bench.reopen()
        await bench.holds_exactly_what_was_committed("reopened")

    @performs("P15")
    async def test_p15_a_large_text_comes_back_whole(self, bench: StorageBench) -> None:
        text = "0123456789\u00e9\u2028\U0001f600" * 100_000
        await bench.commit(entry("a", None, message(text)), RegisterSet(FACT_CUSTOM, "large", [text, text]))
        await bench.reopen()
        found = (await bench.storage.get_entries(["a"]))["a"].payload
        assert isinstance(found, MessagePayload)
        same_json(cast("Any", found.message), cast("Any", message(text).message), "the message")
        large = await bench.storage.get_register(FACT_CUSTOM, "large")
        holds(large is not None and large.value == [text, text], "the register")

    @performs("P16")
    async def test_p16_what_json_cannot_hold_is_refused_in_every_place(self, bench: StorageBench) -> None:
        await bench.commit(entry("e-1", None, message()))
        before = await content_of_storage(bench.storage)
        for name, value in _illegal():
            for place, write in _places(value):
                if isinstance(write, InsertUsage) and write.row.details is value and value is UNSET:
                    continue
                with raises(InvalidJson, f"{name} as {place}") as raised:
                    await bench.storage.commit(Transaction((RegisterSet(FACT_NAME, "", "lead"), write)))
                holds(raised.error.path.startswith("writes[1]"), f"the path names the write: {raised.error.path}")
                same_json(await content_of_storage(bench.storage), before, f"after {name} as {place}")
        await bench.commit(RegisterSet(FACT_NAME, "", "still usable"))
        await bench.reopen()
        await bench.holds_exactly_what_was_committed("reopened after refusals")

    @performs("P16")
    async def test_p16_ids_and_keys_that_are_no_text_in_utf_8_are_refused(self, bench: StorageBench) -> None:
        for write in (
            RegisterSet(FACT_CUSTOM, "\ud800", 1), RegisterDelete(FACT_CUSTOM, "\ud800"),
            entry("\ud800", None, message()), usage_row("\ud800", usage()), entry("a", None, custom("\ud800")),
            InsertUsage(UsageDraft(id="u-9", usage=usage(), entry_id="\ud800")),
        ):  # fmt: skip
            with raises(InvalidJson, f"{write!r}"):
                await bench.storage.commit(Transaction((RegisterSet(FACT_NAME, "", "lead"), write)))
        await bench.holds_exactly_what_was_committed()

    @performs("P16")
    async def test_p16_the_deepest_allowed_value_is_kept(self, bench: StorageBench) -> None:
        await bench.commit(RegisterSet(FACT_CUSTOM, "deep", _nested(MAX_DEPTH - 10)))
        await bench.reopen()
        await bench.holds_exactly_what_was_committed()
