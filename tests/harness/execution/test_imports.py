"""The blocks know nothing durable."""

import pytest

from tests.architecture.rules import imported_modules
from tests.architecture.sources import sources

MAY_KNOW = ("restartpoint.contract", "restartpoint.errors", "restartpoint.execution", "restartpoint.seams")
DURABLE = frozenset({"OperationState", "RunState", "Transaction", "RegisterSet", "InsertEntry", "LaneState", "Inbox"})


@pytest.mark.covers("RT-5.7-01")
def test_the_blocks_import_neither_storage_nor_sessions_nor_the_runtime() -> None:
    blocks = [source for source in sources("restartpoint") if source.name.startswith("restartpoint.execution")]
    assert len(blocks) >= 5

    own = {name for source in blocks for name in imported_modules(source) if name.startswith("restartpoint")}
    assert [name for name in own if not name.startswith(MAY_KNOW)] == []
    assert [(source.name, word) for source in blocks for word in DURABLE if word in source.text] == []
