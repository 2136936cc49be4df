"""The judge: holds an implementation to the model, commit by commit."""

__all__: list[str] = []
