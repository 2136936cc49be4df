"""Mutation testing of the model's transitions and store: which small faults would its tests not notice?

``python -m ci.mutants`` (or ``make mutants``) tells; docs/reference/mutants.md says how it is measured.
"""

__all__: list[str] = []
