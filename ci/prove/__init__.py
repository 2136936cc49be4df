"""Properties of the model's pure functions that CrossHair confirms over all paths, each beside a faulty twin."""

__all__: list[str] = []
