"""The checks as one pytest class, and the same checks without a test runner.

A backend's author subclasses ``StorageSuite`` in a test module and supplies the fixture ``storage_factory``; or runs
``run_storage_suite`` without a test runner.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from restartpoint.errors import RestartpointError
from restartpoint_oracle.conformance.clauses import checks_of
from restartpoint_oracle.conformance.storage.bench import StorageBench, StorageFactory
from restartpoint_oracle.conformance.storage.ledger import LedgerChecks
from restartpoint_oracle.conformance.storage.lifecycle import LifecycleChecks
from restartpoint_oracle.conformance.storage.registers import RegisterChecks
from restartpoint_oracle.conformance.storage.scans import ScanChecks
from restartpoint_oracle.conformance.storage.transactions import TransactionChecks
from restartpoint_oracle.conformance.storage.values import ValueChecks
from restartpoint_oracle.conformance.verdicts import Verdict
from restartpoint_oracle.errors import OracleFinding

__all__ = ["StorageChecks", "StorageSuite", "run_storage_suite"]


class StorageChecks(TransactionChecks, RegisterChecks, ScanChecks, LedgerChecks, ValueChecks, LifecycleChecks):
    """Every check of the port; each takes a ``StorageBench`` over a fresh session."""


class StorageSuite(StorageChecks):
    """The checks as a pytest class. Subclass it and define the fixture ``storage_factory``, a ``StorageFactory``.

    The checks are coroutines for anyio's pytest plug-in: mark the subclass ``@pytest.mark.anyio``, or set its mode to
    auto. The factory's place must be empty for every test.
    """

    @pytest.fixture
    async def bench(self, storage_factory: StorageFactory) -> AsyncIterator[StorageBench]:
        """A fresh session of the factory, closed at the end."""
        async with StorageBench(storage_factory) as bench:
            yield bench


async def run_storage_suite(new_factory: Callable[[str], StorageFactory]) -> list[Verdict]:
    """A verdict per check, by name; ``new_factory`` gets a check's name and answers the factory of an empty place."""
    verdicts = []
    for check in checks_of(StorageChecks()):
        finding: str | None = None
        try:
            async with StorageBench(new_factory(check.name)) as bench:
                await check.run(bench)
        except (OracleFinding, RestartpointError) as error:
            finding = f"{type(error).__name__}: {error}"
        verdicts.append(Verdict(check=check.name, clauses=check.clauses, finding=finding))
    return verdicts
