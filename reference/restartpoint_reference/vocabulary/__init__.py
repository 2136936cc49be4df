"""The durable nouns of Parts 1 to 3, each with the exact JSON shape that is on disk."""

__all__: list[str] = []
