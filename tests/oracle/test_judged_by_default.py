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

        @pytest.mark.unprojected("a hook rewrites the context")
        def test_rewritten(): ...

        def test_judged(): ...
    """)
    result = run.runpytest_inprocess("-p", "no:cacheprovider", "--strict-markers")
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines([
        "*left out by the judge*",
        "1 test not judged: nothing is committed",
        "2 tests not judged: the disk is damaged on purpose",
        "1 test requests not compared with the model: a hook rewrites the context",
    ])  # fmt: skip


@pytest.mark.parametrize(
    "mark", ["unjudged", "unjudged()", "unjudged('')", "unjudged(7)", "unjudged('a', 'b')", "unprojected"]
)
def test_an_excuse_without_a_reason_stops_the_run(mark: str, run: pytest.Pytester) -> None:
    run.makepyfile(f"""
        import pytest

        @pytest.mark.{mark}
        def test_excused(): ...
    """)
    result = run.runpytest_inprocess("-p", "no:cacheprovider")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*test_excused: a test marked un*ed says why"])


@pytest.mark.parametrize("mark, passes", [("", False), ("@pytest.mark.unprojected('on purpose')", True)])
def test_a_request_that_the_model_does_not_project_fails_the_test_unless_it_says_why(
    mark: str, passes: bool, run: pytest.Pytester
) -> None:
    run.makepyfile(f"""
        import pytest
        from restartpoint_oracle import EffectStarted
        from restartpoint_oracle.fixtures import effect_log
        from restartpoint_oracle.intents import Intent

        {mark}
        def test_asks(effect_log):
            intent = Intent(kind="provider", lane="main", id="r", projected=True)
            started = EffectStarted(kind="provider", name="m", intent=intent, differences=("messages[0]: more",))
            effect_log.events.append(started)
    """)
    result = run.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, errors=0 if passes else 1)


def test_where_nothing_is_left_out_nothing_is_printed(run: pytest.Pytester) -> None:
    run.makepyfile("def test_judged(): ...")
    result = run.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*left out by the judge*")
