"""The mark that ties tests to requirements cannot be misused."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONFTEST = "from ci.covers import pytest_addoption, pytest_collection_modifyitems, pytest_configure\n"
SETTINGS = "[pytest]\nmarkers =\n    covers(*ids): requirement ids\n"


def run(folder: Path, source: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    (folder / "pytest.ini").write_text(SETTINGS)
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_it.py").write_text("import pytest\n" + source)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder), *arguments]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        [*command, str(folder)], cwd=folder, env=environment, text=True, capture_output=True, check=False
    )


@pytest.mark.parametrize(
    "source, complaint",
    [
        ('@pytest.mark.covers("ST-99-1")\ndef test_a(): pass', "no requirement has the id 'ST-99-1'"),
        ("@pytest.mark.covers()\ndef test_a(): pass", "takes one or more ids"),
        ('@pytest.mark.covers("ST-0.1-01")\nclass TestA:\n    def test_a(self): pass', "a class or module is marked"),
        ('pytestmark = pytest.mark.covers("ST-0.1-01")\ndef test_a(): pass', "a class or module is marked"),
        (
            '@pytest.mark.covers("ST-0.2-01", "ST-0.2-02", "ST-0.2-03")\n'
            '@pytest.mark.covers("ST-0.2-04", "ST-0.2-05")\ndef test_a(): pass',
            "5 ids",
        ),
    ],
)
def test_a_wrong_mark_stops_the_run(tmp_path: Path, source: str, complaint: str) -> None:
    result = run(tmp_path, source)
    assert result.returncode != 0
    assert complaint in result.stdout + result.stderr


@pytest.mark.parametrize("workers", [(), ("-p", "xdist.plugin", "-n", "1")], ids=["one process", "xdist"])
def test_only_passing_tests_count(tmp_path: Path, workers: tuple[str, ...]) -> None:
    source = (
        '@pytest.mark.covers("ST-0.2-01")\ndef test_passes(): pass\n'
        '@pytest.mark.covers("ST-0.2-02")\ndef test_fails(): assert False\n'
        '@pytest.mark.covers("ST-0.2-03")\ndef test_skips(): pytest.skip("not here")\n'
        "@pytest.fixture\ndef broken():\n    yield\n    raise ValueError\n"
        '@pytest.mark.covers("ST-0.2-04")\ndef test_breaks_afterwards(broken): pass\n'
    )
    report = tmp_path / "out" / "report.json"
    run(tmp_path, source, "--requirements-report", str(report), *workers)
    results = json.loads(report.read_text())
    assert results["passed"].keys() - results["failed"].keys() == {"ST-0.2-01"}
    assert results["failed"].keys() == {"ST-0.2-02", "ST-0.2-04"}
