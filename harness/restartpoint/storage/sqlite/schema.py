"""The tables of a session file, exactly as they are specified (§1.7)."""

from __future__ import annotations

__all__ = ["SCHEMA"]

SCHEMA = (
    """CREATE TABLE entries(
        id TEXT PRIMARY KEY, parent_id TEXT, seq INTEGER, type TEXT, custom_type TEXT, timestamp INTEGER, payload TEXT
    ) WITHOUT ROWID""",
    "CREATE INDEX ix_entry_parent ON entries(parent_id)",
    "CREATE INDEX ix_entry_seq ON entries(seq, type)",
    "CREATE TABLE registers(namespace TEXT, key TEXT, seq INTEGER, value TEXT, PRIMARY KEY (namespace, key))",
    """CREATE TABLE usage_ledger(
        id TEXT PRIMARY KEY, seq INTEGER, entry_id TEXT, adjustment INTEGER, usage TEXT, details TEXT
    ) WITHOUT ROWID""",
    "CREATE INDEX ix_usage_seq ON usage_ledger(seq)",
    """CREATE TABLE branch_entries(
        branch_id TEXT, entry_id TEXT, entry_seq INTEGER, entry_type TEXT, PRIMARY KEY (branch_id, entry_id)
    ) WITHOUT ROWID""",
    "CREATE INDEX ix_be_seq ON branch_entries(branch_id, entry_seq, entry_id, entry_type)",
    "CREATE INDEX ix_be_type ON branch_entries(branch_id, entry_type, entry_seq, entry_id)",
    "CREATE INDEX ix_be_entry ON branch_entries(entry_id)",
    """CREATE TABLE branch_meta(
        branch_id TEXT PRIMARY KEY, tip_entry_id TEXT, tip_seq INTEGER, base_branch_id TEXT, base_seq INTEGER
    )""",
    "CREATE UNIQUE INDEX ix_bm_tip ON branch_meta(tip_entry_id)",
    """CREATE TABLE session(
        created_at INTEGER, parent_session_id TEXT, storage_version INTEGER, metadata TEXT,
        message_count INTEGER, usage_payload TEXT, next_seq INTEGER
    )""",
    "CREATE TABLE writer_lease(owner_id TEXT, fence INTEGER, expires_at_ms INTEGER)",
)
"""Every statement that makes an empty session file; a missing value is SQL NULL, JSON null is the text ``null``."""
