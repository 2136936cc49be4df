"""What a commit writes, in words short enough for a test."""

from restartpoint_reference import Commit

GONE = ["-op.meta", "-op.state", "-op.preparation", "lane.lastResult", "lane.state"]
"""The end of an operation that had a preparation and nothing else."""


def written(commit: Commit) -> list[str]:
    """The kind or namespace of each write, deletions with a dash."""
    elements = [write.to_json() for write in commit.writes]
    return [f"{'-' if one.get('op') == 'delete' else ''}{one.get('namespace', one['kind'])}" for one in elements]
