"""What a claimed session wrote or read lately, so that rereading it needs no hop to the connection's thread (§1.7).

Nobody writes beside the owner of the claim, and whoever takes the claim makes the owner's next commit fail. So what
the owner wrote last is what the file holds, until a commit's outcome is uncertain; then the file is asked again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar, assert_never

from restartpoint.contract.entries import Entry
from restartpoint.contract.registers import Namespace, Register, RegisterKey
from restartpoint.contract.writes import (
    CommitResult,
    InsertEntry,
    InsertUsage,
    RegisterDelete,
    RegisterSet,
    Transaction,
)

__all__ = ["MOST_ENTRIES", "MOST_REGISTERS", "Recent"]

V = TypeVar("V")

MOST_REGISTERS = 256
MOST_ENTRIES = 32


class Recent:
    """Registers by namespace and key, and entries by id, the newest of each.

    It knows what is absent in a small namespace that was listed once, and nowhere else. It changes on the
    connection's thread only, where commits and reads take turns. Others may look while no commit is on its way.
    """

    def __init__(self) -> None:
        self._registers: dict[tuple[str, str], Register[Any]] = {}
        self._entries: dict[str, Entry] = {}
        self._namespaces: dict[str, dict[str, Register[Any]] | None] = {}
        """The whole content of each namespace that was listed, None where it is too much to be known."""
        self._trusted = True

    def registers(self, keys: Sequence[RegisterKey]) -> list[Register[Any] | None] | None:
        """The registers in the order of ``keys``; None when one of them is not known here."""
        try:
            return [self._register(namespace.name, key) for namespace, key in keys]
        except KeyError:
            return None

    def listed(self, namespace: Namespace[V], key_prefix: str) -> list[Register[V]] | None:
        """The registers whose key starts with the prefix, by key; None when the namespace is not known whole."""
        whole = self._namespaces.get(namespace.name)
        return None if whole is None else [whole[key] for key in sorted(whole) if key.startswith(key_prefix)]

    def may_know(self, namespace: str) -> bool:
        """Whether it is worth reading the whole namespace once, to list it from here from then on."""
        return self._trusted and namespace not in self._namespaces

    def entries(self, ids: Sequence[str]) -> dict[str, Entry] | None:
        """The entries by id; None when one of them is not known here."""
        try:
            return {key: self._entries[key] for key in ids}
        except KeyError:
            return None

    def note_commit(self, tx: Transaction, result: CommitResult) -> None:
        """Know what a transaction that is durable now has changed."""
        if not self._trusted:
            return
        for write, seq in zip(tx.writes, result.seqs, strict=True):
            match write:
                case RegisterSet(namespace=namespace, key=key, value=value):
                    self._note(Register(namespace=namespace, key=key, value=value, seq=seq))
                case RegisterDelete(namespace=namespace, key=key):
                    self._registers.pop((namespace.name, key), None)
                    whole = self._namespaces.get(namespace.name)
                    if whole is not None:
                        whole.pop(key, None)
                case InsertEntry(entry=draft):
                    self._entries[draft.id] = Entry(
                        id=draft.id,
                        parent_id=draft.parent_id,
                        seq=seq,
                        timestamp=result.timestamp,
                        payload=draft.payload,
                    )
                case InsertUsage():
                    pass
                case _:
                    assert_never(write)
        _shorten(self._registers, MOST_REGISTERS)
        _shorten(self._entries, MOST_ENTRIES)

    def note_registers(self, found: Iterable[Register[Any] | None]) -> None:
        """Know what a read of registers has found."""
        if self._trusted:
            for register in found:
                if register is not None:
                    self._note(register)
            _shorten(self._registers, MOST_REGISTERS)

    def note_namespace(self, namespace: str, found: Sequence[Register[Any]]) -> None:
        """Know all that a namespace holds, or that it is too much: at least one more than is kept."""
        self._namespaces[namespace] = (
            None if len(found) > MOST_REGISTERS else {register.key: register for register in found}
        )

    def distrust(self) -> None:
        """Forget everything for good: the claim may be lost, or the file may hold another state."""
        self._trusted = False
        self._registers.clear()
        self._entries.clear()
        self._namespaces.clear()

    def _register(self, namespace: str, key: str) -> Register[Any] | None:
        whole = self._namespaces.get(namespace)
        return self._registers[namespace, key] if whole is None else whole.get(key)

    def _note(self, register: Register[Any]) -> None:
        place = register.namespace.name, register.key
        whole = self._namespaces.get(register.namespace.name)
        if whole is not None:
            whole[register.key] = register
            if len(whole) > MOST_REGISTERS:
                self._namespaces[register.namespace.name] = None
        self._registers.pop(place, None)  # so that it becomes the one that is forgotten last
        self._registers[place] = register


def _shorten(known: dict[Any, Any], most: int) -> None:
    """Forget what was noted first."""
    while len(known) > most:
        del known[next(iter(known))]
