"""The port offers one way to write and no way around it."""

import pytest

from restartpoint.storage import JsonlStorage, MemoryStorage, Storage

READS = {
    "get_entries", "get_register", "get_registers", "list_registers", "scan_branch", "scan_branch_structure",
    "scan_entries", "scan_usage", "get_stats",
}  # fmt: skip


def public(kind: type) -> set[str]:
    return {name for name in vars(kind) if not name.startswith("_")}


@pytest.mark.covers("ST-1.5-01", "ST-1.5-13", "ST-0.3-06", "ST-0.6-05")
def test_commit_is_the_only_write_and_no_query_crosses_namespaces_or_reads_a_log() -> None:
    assert public(Storage) == {"metadata", "commit", "close", *READS}


def test_the_backends_add_only_ways_to_make_and_find_a_storage() -> None:
    """Typed as the port on purpose: the type checker holds both to it."""
    kinds: tuple[type[Storage], ...] = (MemoryStorage, JsonlStorage)
    added = [public(kind) - public(Storage) for kind in kinds]
    assert added == [{"create", "attach"}, {"create", "open", "read_metadata", "delete"}]
