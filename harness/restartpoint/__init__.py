"""A durable runtime for agent conversations."""

__all__: list[str] = []
