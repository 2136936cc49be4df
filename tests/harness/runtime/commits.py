"""What the commits of a stage hold: register values in order as JSON, entries, and one commit by its name."""

import json
from typing import Any

from restartpoint.contract import OP_STATE, EntryDraft, InsertEntry, Namespace, RegisterSet, Transaction, encode_json
from tests.harness.runtime.stage import Stage

__all__ = ["as_json", "commit_named", "inserted", "phases", "written"]


def as_json(value: Any) -> Any:
    """The value as a reader of its durable form sees it."""
    return json.loads(encode_json(value))


def written(stage: Stage, namespace: Namespace[Any]) -> list[Any]:
    """Every value that was set in that namespace since the harness was opened, as JSON."""
    return [
        as_json(write.value)
        for tx in stage.court.commits
        for write in tx.writes
        if isinstance(write, RegisterSet) and write.namespace is namespace
    ]


def phases(stage: Stage, kind: str) -> list[Any]:
    """Every written phase of that kind, as JSON."""
    return [state["phase"] for state in written(stage, OP_STATE) if state["phase"]["kind"] == kind]


def commit_named(stage: Stage, name: str, number: int = 0) -> Transaction:
    """The commit of that name, the first or a later one."""
    return [tx for known, tx in zip(stage.names, stage.court.commits, strict=True) if known == name][number]


def inserted(tx: Transaction) -> list[EntryDraft]:
    """The entries that a commit inserts, in order."""
    return [write.entry for write in tx.writes if isinstance(write, InsertEntry)]
