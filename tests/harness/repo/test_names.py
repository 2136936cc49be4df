"""Which session ids may become file names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from restartpoint.errors import InvalidSessionId
from restartpoint.repo import JsonlRepository, check_session_id

GOOD = ["a", "0", "-", "_", "A.b-c_d", "x" * 128, "01a22b47-b957-774f-a047-f96b4e9fae78", "console", "com10", "a..b"]
BAD = [
    "", ".", "..", ".a", "a.", "a/b", "/a", "a\\b", "a:b", "a b", " a", "a\x00", "a\n", "\n", "é", "\u2028", "%2e", "~",
    "x" * 129, "con", "NUL", "Prn.txt", "aux.", "COM1", "lpt9.jsonl",
]  # fmt: skip


@pytest.mark.parametrize("id", GOOD)
def test_portable_file_names_are_ids(id: str) -> None:
    check_session_id(id)


@pytest.mark.parametrize("id", BAD)
def test_whatever_some_system_could_read_as_something_else_is_refused(id: str) -> None:
    with pytest.raises(InvalidSessionId) as caught:
        check_session_id(id)
    assert caught.value.id == id


@given(st.text(max_size=8) | st.text("./\\a~:", max_size=6))
def test_no_accepted_id_leads_out_of_the_folder(id: str) -> None:
    repository = JsonlRepository("folder")
    try:
        path = repository.path_of(id)
    except InvalidSessionId:
        return
    assert path.parent == repository.root
    assert path.name == f"{id}.jsonl"
