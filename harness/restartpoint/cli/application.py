"""The application: every installed command, and output that no terminal and no encoding can break."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, TextIO

import typer

from restartpoint.cli.consoles import complain

__all__ = ["GROUP", "build", "run"]

GROUP = "restartpoint.commands"
"""The entry-point group of subcommands; each loads ``register(app: typer.Typer) -> None``."""


def run() -> None:
    """Parse ``sys.argv`` and run its command; ends the process with the command's exit code."""
    for stream in (sys.stdout, sys.stderr):
        _tolerate(stream)
    build(entry_points(group=GROUP))()


def build(commands: Iterable[EntryPoint]) -> typer.Typer:
    """The application with these commands, by name; one that cannot be loaded is named on stderr."""
    app = typer.Typer(
        name="restartpoint",
        help="Durable agent conversations that survive a kill.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_show_locals=False,
    )

    @app.callback()
    def _root() -> None:
        """Durable agent conversations that survive a kill."""

    for entry in sorted(commands, key=lambda entry: entry.name):
        _register(entry, app)
    return app


def _register(entry: EntryPoint, app: typer.Typer) -> None:
    try:
        register = entry.load()
    except (ImportError, AttributeError) as error:
        if isinstance(error, ModuleNotFoundError) and not _is_own(entry, error.name):
            _register_lacking(entry, app, str(error.name))
        else:
            complain(f"the command {entry.name} ({entry.value}) cannot be loaded: {error}")
        return
    register(app)


def _is_own(entry: EntryPoint, module: str | None) -> bool:
    """Whether a missing module is of the command's own package, so that the command itself is damaged."""
    return module is None or module.partition(".")[0] == entry.module.partition(".")[0]


def _register_lacking(entry: EntryPoint, app: typer.Typer, module: str) -> None:
    """In the place of a command that needs a package which is not installed, one that says so."""
    help_text = f"Needs the package {module}, which is not installed."

    @app.command(entry.name, help=help_text, context_settings={"ignore_unknown_options": True})
    def _lacking(_: Annotated[list[str] | None, typer.Argument(hidden=True)] = None) -> None:
        complain(f"{entry.name} needs the package {module}; what the oracle needs comes with restartpoint[oracle]")
        raise typer.Exit(2)


def _tolerate(stream: TextIO) -> None:
    """Write what the encoding of the stream lacks as escapes, instead of failing in the middle of the output."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
