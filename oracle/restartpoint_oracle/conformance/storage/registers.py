"""Registers: set, delete, recreate, list and batch reads (P6, P11; §1.3, §1.4, §1.5)."""

from __future__ import annotations

from restartpoint.contract import (
    FACT_CUSTOM,
    FACT_LABEL,
    FACT_NAME,
    LANE_LEAF,
    NAMESPACES,
    OP_STATE,
    OP_TOOL_ARGS,
    PENDING_ENTRY,
    Expectation,
    RegisterDelete,
    RegisterKey,
    RegisterSet,
)
from restartpoint_oracle.conformance.claims import equal, holds, same_json
from restartpoint_oracle.conformance.clauses import performs
from restartpoint_oracle.conformance.storage.bench import StorageBench
from restartpoint_oracle.samples import REGISTER_SAMPLES, register_value
from restartpoint_oracle.wire import json_text, register_json

__all__ = ["RegisterChecks"]

_KEYS = (
    "", "a", "a%", "a%b", "a*", "a?b", "a[b]", "a_b", "a\\b", "ab", "a\u0000b", "a:", "a:1", "a:10", "a:2", "b", "B",
    "'; drop", '"q"', " ", "\u00e9", "e\u0301", "\ud7ff", "\ud7ffx", "\ue000", "\uffff", "\U00010000", "\U0001f600",
    "\U0001f600x", "\U0010ffff", "\U0010ffffx", "a\U0010ffff", "a\U0010ffff\U0010ffff", "line\u2028end", "tab\t",
)  # fmt: skip
_PREFIXES = (*_KEYS, "a\U0010ffffz", "zz", "\ud7fe", "%", "_", "*", "A")


class RegisterChecks:
    """Checks of registers."""

    @performs("P6", "ST-1.4-13", "ST-0.3-03", "TIER-X-01")
    async def test_p06_a_set_replaces_a_delete_removes_and_a_later_set_recreates(self, bench: StorageBench) -> None:
        await bench.commit(RegisterSet(FACT_NAME, "", "one"))
        second = await bench.commit(RegisterSet(FACT_NAME, "", "two"))
        found = await bench.storage.get_register(FACT_NAME, "")
        equal((found and found.value, found and found.seq), ("two", second.first_seq), "the replaced register")
        await bench.commit(RegisterDelete(FACT_NAME, ""))
        equal(await bench.storage.get_register(FACT_NAME, ""), None, "the deleted register")
        third = await bench.commit(RegisterSet(FACT_NAME, "", "three"))
        found = await bench.storage.get_register(FACT_NAME, "")
        equal((found and found.value, found and found.seq), ("three", third.first_seq), "the recreated register")
        await bench.holds_exactly_what_was_committed()
        await bench.reopen()
        await bench.holds_exactly_what_was_committed("reopened")

    @performs("P6", "ST-1.4-13")
    async def test_p06_several_writes_to_one_key_in_one_transaction_apply_in_order(self, bench: StorageBench) -> None:
        await bench.commit(
            RegisterSet(FACT_CUSTOM, "a", 1), RegisterDelete(FACT_CUSTOM, "a"), RegisterSet(FACT_CUSTOM, "a", 2),
            RegisterSet(FACT_CUSTOM, "b", 1), RegisterDelete(FACT_CUSTOM, "b"),
            RegisterDelete(FACT_CUSTOM, "c"), RegisterSet(FACT_CUSTOM, "c", 1), RegisterSet(FACT_CUSTOM, "c", 1),
        )  # fmt: skip
        await bench.holds_exactly_what_was_committed()

    @performs("P6", "ST-1.4-14")
    async def test_p06_deleting_an_absent_key_succeeds_and_changes_nothing(self, bench: StorageBench) -> None:
        before = bench.expected.snapshot()
        result = await bench.commit(RegisterDelete(FACT_LABEL, "absent"))
        equal(len(result.seqs), 1, "the delete has a number")
        same_json(bench.expected.snapshot(), before, "the expectation itself")
        await bench.holds_exactly_what_was_committed()
        await bench.commit(
            RegisterDelete(FACT_LABEL, "absent"), expectations=(Expectation(FACT_LABEL, "absent", None),)
        )

    @performs("P6", "P15")
    async def test_p06_every_namespace_holds_its_values(self, bench: StorageBench) -> None:
        for name, values in REGISTER_SAMPLES.items():
            namespace = NAMESPACES[name]
            for value in values:
                result = await bench.commit(RegisterSet(namespace, "key", register_value(name, value)))
                found = await bench.storage.get_register(namespace, "key")
                holds(found is not None, f"{name} holds its register")
                assert found is not None
                placed = {"namespace": name, "key": "key", "value": value, "seq": result.first_seq}
                same_json(register_json(found), placed, name, ordered=False)
                holds(type(found.value) is type(register_value(name, value)), f"{name} answers its own type")
        await bench.holds_exactly_what_was_committed()
        await bench.reopen()
        await bench.holds_exactly_what_was_committed("reopened")

    @performs("P6")
    async def test_p06_namespaces_do_not_overlap(self, bench: StorageBench) -> None:
        await bench.commit(RegisterSet(FACT_LABEL, "k", "label"), RegisterSet(FACT_CUSTOM, "k", "custom"))
        await bench.commit(RegisterDelete(FACT_LABEL, "k"))
        equal(await bench.storage.get_register(FACT_LABEL, "k"), None, "the deleted one")
        found = await bench.storage.get_register(FACT_CUSTOM, "k")
        equal(found and found.value, "custom", "the other one")
        await bench.holds_exactly_what_was_committed()

    @performs("P11", "ST-1.5-20")
    async def test_p11_registers_are_listed_by_code_points_of_the_key(self, bench: StorageBench) -> None:
        await bench.commit(*(RegisterSet(FACT_CUSTOM, key, position) for position, key in enumerate(_KEYS)))
        await bench.commit(RegisterSet(FACT_LABEL, "a", "another namespace"))
        found = [register.key for register in await bench.storage.list_registers(FACT_CUSTOM)]
        equal(found, sorted(_KEYS), "the keys in order")

    @performs("P11", "ST-1.5-20")
    async def test_p11_a_prefix_is_taken_literally(self, bench: StorageBench) -> None:
        await bench.commit(*(RegisterSet(FACT_CUSTOM, key, position) for position, key in enumerate(_KEYS)))
        for again in range(2):
            for prefix in _PREFIXES:
                found = [
                    register_json(register) for register in await bench.storage.list_registers(FACT_CUSTOM, prefix)
                ]
                same_json([*found], bench.expected.listed("fact.custom", prefix), f"the keys under {prefix!r}")
            if not again:
                await bench.commit(RegisterDelete(FACT_CUSTOM, "a:10"), RegisterSet(FACT_CUSTOM, "a:3", None))

    @performs("P11")
    async def test_p11_an_operation_finds_its_own_arguments_and_no_other_operation_s(self, bench: StorageBench) -> None:
        keys = ("op-1:s1:0", "op-1:s1:10", "op-1:s1:2", "op-1:s2:0", "op-10:s1:0", "op-1", "op-2:s1:0")
        await bench.commit(*(RegisterSet(OP_TOOL_ARGS, key, {}) for key in keys))
        found = [register.key for register in await bench.storage.list_registers(OP_TOOL_ARGS, "op-1:")]
        equal(found, ["op-1:s1:0", "op-1:s1:10", "op-1:s1:2", "op-1:s2:0"], "the keys of op-1")

    @performs("ST-1.5-04")
    async def test_p06_unknown_keys_are_none_and_null_is_a_value(self, bench: StorageBench) -> None:
        await bench.commit(RegisterSet(FACT_CUSTOM, "null", None))
        equal(await bench.storage.get_register(FACT_CUSTOM, "absent"), None, "an absent register")
        found = await bench.storage.get_register(FACT_CUSTOM, "null")
        holds(found is not None and found.value is None, "a register that holds null exists")
        leaf = await bench.storage.get_register(LANE_LEAF, "main")
        holds(leaf is not None and leaf.value is None, "the leaf of a fresh lane is null, not absent")

    @performs("P6")
    async def test_p06_a_batch_read_answers_in_the_order_of_its_keys(self, bench: StorageBench) -> None:
        await bench.commit(RegisterSet(FACT_CUSTOM, "a", 1), RegisterSet(FACT_CUSTOM, "b", None))
        keys: list[RegisterKey] = [
            (FACT_CUSTOM, "b"), (OP_STATE, "op-1"), (LANE_LEAF, "main"), (FACT_CUSTOM, "a"), (FACT_CUSTOM, "b"),
            (PENDING_ENTRY, "a"),
        ]  # fmt: skip
        found = await bench.storage.get_registers(keys)
        equal([register and register.key for register in found], ["b", None, "main", "a", "b", None], "the keys")
        texts = [json_text(register_json(register)) for register in found if register is not None]
        single = [await bench.storage.get_register(namespace, key) for namespace, key in keys]
        equal(texts, [json_text(register_json(one)) for one in single if one is not None], "the same as single reads")
        equal(await bench.storage.get_registers([]), [], "no keys")
