"""What a test leaves out is told: each reason at the end of the run, and none may be left out."""

import pytest

pytest_plugins = ["pytester"]

CONFTEST = """
from restartpoint_oracle.fixtures import pytest_collection_modifyitems, pytest_configure, pytest_terminal_summary
"""


@pytest.fixture
def run(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest(CONFTEST)
    return pytester


def test_each_reason_is_printed_once_with_its_number_of_tests(run: pytest.Pytester) -> None:
    run.makepyfile("""
        import pytest

        @pytest.mark.unjudged("the disk is damaged on purpose")
        @pytest.mark.parametrize("number", [1, 2])
        def test_damage(number): ...

        @pytest.mark.unjudged("nothing is committed")
        def test_nothing(): ...

        def test_judged(): ...
    """)
    result = run.runpytest_inprocess("-p", "no:cacheprovider", "--strict-markers")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines([
        "*left out by the judge*",
        "1 test not judged: nothing is committed",
        "2 tests not judged: the disk is damaged on purpose",
    ])  # fmt: skip


@pytest.mark.parametrize("mark", ["unjudged", "unjudged()", "unjudged('')", "unjudged(7)", "unjudged('a', 'b')"])
def test_an_excuse_without_a_reason_stops_the_run(mark: str, run: pytest.Pytester) -> None:
    run.makepyfile(f"""
        import pytest

        @pytest.mark.{mark}
        def test_excused(): ...
    """)
    result = run.runpytest_inprocess("-p", "no:cacheprovider")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*test_excused: a test that is not judged says why"])


def test_where_nothing_is_left_out_nothing_is_printed(run: pytest.Pytester) -> None:
    run.makepyfile("def test_judged(): ...")
    result = run.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*left out by the judge*")
