"""The conformance suite of the storage port: one check per clause, the same for every backend (§1.4-§1.6, §2.5)."""

from restartpoint_oracle.conformance.storage.bench import StorageBench, StorageFactory, entry, usage_row
from restartpoint_oracle.conformance.storage.suite import StorageChecks, StorageSuite, run_storage_suite

__all__ = [
    "StorageBench",
    "StorageChecks",
    "StorageFactory",
    "StorageSuite",
    "entry",
    "run_storage_suite",
    "usage_row",
]
