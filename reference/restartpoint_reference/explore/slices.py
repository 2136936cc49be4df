"""The slices of the state machine that are explored one by one; together they take every transition."""

from typing import Final

from restartpoint_reference.explore.alphabet import CONFIGURATION, Alphabet, Result, response
from restartpoint_reference.explore.world import Move, Slice
from restartpoint_reference.transitions.frame import Nothing
from restartpoint_reference.transitions.session import Configuration
from restartpoint_reference.transitions.table import TRANSITIONS
from restartpoint_reference.vocabulary.states import Replay

OPENING: Final = (
    Move(transition=TRANSITIONS["create_session"], lane="main", inputs=Nothing()),
    Move(transition=TRANSITIONS["seed_main"], lane="main", inputs=Configuration(configuration=CONFIGURATION)),
)
"""A session whose main lane is configured."""

RUN_WITH_TOOLS: Final = Slice(
    name="run-with-tools",
    summary="Runs whose responses ask for tools, that end them or not, and crashes at any place.",
    opening=OPENING,
    public=("accept_run",),
    alphabet=Alphabet(
        responses=(response("stop"), response("toolUse", calls=2), response("length", calls=1)),
        results=(Result(), Result(terminate=True), Result(usage=True)),
        replays=(Replay.NEVER, Replay.SAFE),
    ),
    bounds={"operations": 1, "turns": 2, "crash": 1},
    full={"crash": 2},
)
SLICES: Final = (RUN_WITH_TOOLS,)
