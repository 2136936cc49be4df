"""The executable model of Restartpoint: pure functions from states to commits."""

__all__: list[str] = []
