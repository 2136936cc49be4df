"""The oracle's commands of ``restartpoint``: parse and render, nothing else."""

__all__: list[str] = []
