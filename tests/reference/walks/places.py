"""Places in a commit that a walk names when it says which alterations nobody can see."""


def under(head: str, *names: str) -> set[str]:
    """These fields below one place."""
    return {head, *(f"{head}.{name}" for name in names)}


MESSAGE = "entry.message"
USAGE = under("usage.usage", "input", "output", "cacheRead", "cacheWrite", "totalTokens", "cost") | {
    f"usage.usage.cost.{name}" for name in ("input", "output", "cacheRead", "cacheWrite", "total")
}
WORDS = under(MESSAGE, "content.*", "content.*.text", "content.*.type", "timestamp")
INPUT = WORDS | {f"{MESSAGE}.role"}
RESULT = WORDS | {f"{MESSAGE}.isError"}
RESPONSE = under(MESSAGE, "api", "model", "provider", "timestamp")
FAILURE = RESPONSE | {f"{MESSAGE}.errorMessage", "op.state.value.phase.error.message"}
CONFIGURED = {f"lane.config.value.{name}" for name in ("model.modelId", "model.provider", "thinkingLevel")} | {
    "lane.config.value.activeToolNames"
}
CONTEXT = "op.state.value.phase.generation.context"
