"""A session file is read where it lies, whatever it is called."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from restartpoint.errors import CorruptFile, SessionNotFound
from restartpoint.repo import FileRepository, open_session_file
from tests.harness.session.stage import say


async def test_any_session_file_can_be_read_under_any_name(files: FileRepository, tmp_path: Path) -> None:
    async with await files.create(id="s") as session:
        await session.append_message(say("x"))
    renamed = files.path_of("s").rename(tmp_path / "evidence")
    (tmp_path / "link").symlink_to(renamed)
    for path in (renamed, str(renamed), tmp_path / "link"):
        async with await open_session_file(path) as reader:
            assert reader.metadata.id == "s"
            assert (await reader.get_stats()).message_count == 1


async def test_a_session_that_is_open_elsewhere_can_be_read(files: FileRepository, root: Path) -> None:
    async with await files.create(id="s") as session:
        await session.append_message(say("x"))
        async with await open_session_file(files.path_of("s")) as reader:
            assert (await reader.get_stats()).message_count == 1
        await session.append_message(say("y"))


async def test_what_is_no_session_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SessionNotFound):
        await open_session_file(tmp_path / "missing")
    with pytest.raises(CorruptFile):
        await open_session_file(tmp_path)
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "text").write_bytes(b"hello\nworld\n")
    for name in ("empty", "text"):
        with pytest.raises(CorruptFile, match=name):
            await open_session_file(tmp_path / name)


async def test_a_file_that_is_removed_while_it_is_looked_at_is_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, connect = tmp_path / "s", sqlite3.connect
    path.write_bytes(b"x")

    def late(database: str, **options: Any) -> Any:
        path.unlink(missing_ok=True)
        return connect(database, **options)

    monkeypatch.setattr(sqlite3, "connect", late)
    with pytest.raises(SessionNotFound):
        await open_session_file(path)
