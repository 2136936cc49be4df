"""The checks of a conformance suite say themselves which requirements they perform; here that becomes their mark."""

import pytest

from restartpoint_oracle.conformance import clauses_of
from restartpoint_oracle.fixtures import effect_log, judged

__all__ = ["effect_log", "judged", "pytest_collection_modifyitems"]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.Function) and (clauses := clauses_of(item.function)):
            requirements = [clause for clause in clauses if "-" in clause]
            if requirements:
                item.add_marker(pytest.mark.covers(*requirements))
