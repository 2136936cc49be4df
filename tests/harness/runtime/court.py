"""The oracle over a session under test: every commit judged, every request and call held to its durable intent."""

from restartpoint.contract import CommitResult, JsonObject, Model, ModelRequest, Transaction
from restartpoint.storage import Storage
from restartpoint_oracle import (
    EffectLog,
    Judge,
    OracleFinding,
    check_growth,
    check_requests,
    check_sandwich,
    content_of_storage,
    state_of_content,
)
from restartpoint_reference import State

__all__ = ["Court", "model_state"]


async def model_state(storage: Storage) -> State:
    """Everything durable of a session, as the model holds it."""
    return state_of_content(await content_of_storage(storage))


class Court:
    """Follows one open session; ``names`` are the transitions of its commits in order, ``effects`` what started.

    ``unprojected`` is the reason why its requests are not compared with the model's projection, if there is one.
    """

    def __init__(self, state: State, *, unprojected: str | None = None) -> None:
        self._judge = Judge(state)
        self.effects = EffectLog()
        self.effects.follow(self._judge)
        self._unprojected = unprojected
        self.names: list[str] = []
        self.commits: list[Transaction] = []

    @property
    def state(self) -> State:
        """What is durable by now, as the model holds it."""
        return self._judge.state

    def judge(self, tx: Transaction, result: CommitResult) -> str:
        """The name of the transition that made this commit, or "unexplained"."""
        self.commits.append(tx)
        try:
            judged = self._judge.observe(tx, result)
        except OracleFinding:
            judged = None  # the judge keeps it for the verdict
        self.names.append("unexplained" if judged is None else judged.name)
        return self.names[-1]

    def request(self, model: Model, request: ModelRequest) -> None:
        """A provider request starts."""
        self.effects.provider(model, request)

    def tool(self, name: str, tool_call_id: str, arguments: JsonObject) -> None:
        """A tool call starts."""
        self.effects.tool(name, tool_call_id, arguments)

    def verdict(self) -> None:
        """Raise the first finding, if there was one."""
        self._judge.verify()
        check_sandwich(self.effects)
        if self._unprojected is None:
            check_requests(self.effects)
            check_growth(self.effects)
