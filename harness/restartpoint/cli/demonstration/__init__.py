"""The demo: a child process is killed in the middle of a run, and another process finishes the run."""

__all__: list[str] = []
