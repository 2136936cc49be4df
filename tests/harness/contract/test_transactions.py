"""What a transaction is made of, and that the type checker knows the value of each namespace (§1.4)."""

import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from msgspec.structs import fields

from restartpoint.contract import (
    FACT_NAME,
    Expectation,
    InsertEntry,
    InsertUsage,
    RegisterDelete,
    RegisterSet,
    Transaction,
    Write,
)

ROOT = Path(__file__).resolve().parents[3]

SAMPLE = """
from restartpoint.contract import FACT_NAME, LANE_LEAF, LANE_STATE, LaneState, RegisterSet
from restartpoint.storage import Storage

RegisterSet(FACT_NAME, "", "text")
RegisterSet(LANE_LEAF, "main", None)
RegisterSet[LaneState](LANE_STATE, "main", LaneState(current_operation_id=None, pending_next_run=[]))
RegisterSet[str](FACT_NAME, "", 5)  # line 8
RegisterSet[LaneState](LANE_STATE, "main", "idle")  # line 9
RegisterSet[str](LANE_STATE, "main", "idle")  # line 10

async def read(storage: Storage) -> int:
    register = await storage.get_register(FACT_NAME, "")
    return 0 if register is None else register.value  # line 14
"""


@pytest.mark.covers("ST-1.4-03")
def test_a_transaction_is_its_writes_in_order() -> None:
    writes = (RegisterSet(FACT_NAME, "", "a"), RegisterDelete(FACT_NAME, ""))
    assert Transaction(writes).writes == writes
    assert [(field.name, field.required) for field in fields(Transaction)] == [
        ("writes", True),
        ("expectations", False),
    ]
    assert Transaction(writes, (Expectation(FACT_NAME, "", None),)) != Transaction(writes)
    kinds = {getattr(kind, "__origin__", kind) for kind in get_args(Write)}
    assert kinds == {InsertEntry, InsertUsage, RegisterSet, RegisterDelete}


@pytest.mark.slow
@pytest.mark.covers("ST-1.4-02")
def test_the_type_checker_refuses_a_value_of_another_namespace(tmp_path: Path) -> None:
    sample = tmp_path / "sample.py"
    sample.write_text(SAMPLE, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), str(sample)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert [int(line.split(":")[1]) for line in errors] == [8, 9, 10, 14], done.stdout + done.stderr
