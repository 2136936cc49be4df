"""Edits by hand are found where they are, under the name of the transition and the section (§3, §9.1)."""

from pathlib import Path

import pytest

from restartpoint_oracle.audit import audit
from tests.oracle.audit.forgeries import FORGERIES, Forgery
from tests.oracle.audit.histories import file_of


@pytest.mark.parametrize("forgery", FORGERIES.values(), ids=lambda forgery: forgery.name)
def test_a_forgery_is_found_in_its_commit(forgery: Forgery, tmp_path: Path) -> None:
    path = tmp_path / "forged.jsonl"
    history, names = forgery.edited()
    path.write_bytes(file_of(history))
    report = audit(path)
    first = report.findings[0]
    assert report.exit_code == 1
    assert first.commit is not None
    assert (first.kind, names[first.commit - 1]) == (forgery.kind, forgery.at or forgery.transition)
    assert first.line == first.commit + 1
    assert any(forgery.says in line for line in first.differences), first.differences
    if forgery.transition is not None:
        assert (first.transition, first.section) == (forgery.transition, forgery.section)
    elif forgery.section:
        assert first.section == forgery.section


def test_every_forgery_is_an_edit() -> None:
    assert len(FORGERIES) >= 30
    for forgery in FORGERIES.values():
        assert forgery.edited()[0].commits != forgery.unedited().commits
