"""The named exceptions to the architecture rules, each with its reason. A reason that no longer applies fails a test.

Keys are dotted module names, or `module:function` with the qualified name of the function.
"""

__all__ = ["AMBIENT", "BOUND_IMPORTS", "EFFECT_STARTS", "LONG_FUNCTIONS", "LONG_MODULES", "SLEEPS_IN_TESTS"]

LONG_MODULES: dict[str, str] = {
    "restartpoint.contract": "a list of names only, each once to import and once to export",
}

LONG_FUNCTIONS: dict[str, str] = {}

# Modules outside `restartpoint.seams` that may read a clock, mint an id or draw a chance.
AMBIENT: dict[str, str] = {}

# Imports that the harness may use only in these packages.
BOUND_IMPORTS: dict[str, dict[str, str]] = {
    "aiosqlite": {"restartpoint.storage.sqlite": "the one hop to the connection's thread"},
    "asyncio": {
        "restartpoint.storage.sqlite": "aiosqlite completes asyncio futures; the commit runs in a task of its own"
    },
    "fcntl": {"restartpoint.storage.jsonl": "the advisory lock of a session file"},
    "multiprocessing": {},
    "queue": {},
    "rich": {"restartpoint.cli": "rendering", "restartpoint.tui": "rendering"},
    "signal": {"restartpoint.cli": "the demo kills its child"},
    "sniffio": {},
    "socket": {},
    "sqlite3": {
        "restartpoint.storage.sqlite": "the synchronous core",
        "restartpoint.repo": "the catalogue of sessions",
    },
    "subprocess": {"restartpoint.cli": "the demo starts the child that it kills"},
    "threading": {"restartpoint.storage.sqlite": "the lease is renewed by a thread, whatever the event loop does"},
    "trio": {},
    "typer": {"restartpoint.cli": "parsing"},
}

# Every place that starts an effect, i.e. that asserts the gate and then awaits the effect with nothing between (§4.2).
EFFECT_STARTS: dict[str, str] = {
    "restartpoint.execution.tools:execute_tool_call": "one real tool.execute",
    "restartpoint.runtime.procedures.activation:_before_resume": "the before_resume aggregate",
    "restartpoint.runtime.procedures.after_tool:after_tool_patch": "the after_tool aggregate",
    "restartpoint.runtime.procedures.assistant:_patched_options": "the before_request aggregate",
    "restartpoint.runtime.procedures.checkpoint:_run_end_follow_up": "the before_run_end aggregate",
    "restartpoint.runtime.procedures.request:_Step.after_response": "the after_response aggregate",
    "restartpoint.runtime.procedures.request:_Step.before_payload": "the before_payload aggregate",
    "restartpoint.runtime.procedures.request:_Step.request": "one Models.request of an assistant attempt",
    "restartpoint.runtime.procedures.request:_Step.transform_context": "the transform_context aggregate",
    "restartpoint.runtime.procedures.tools:_clear": "the before_tool aggregate",
}

# Tests that wait for real time, as `module:function`.
SLEEPS_IN_TESTS: dict[str, str] = {}
