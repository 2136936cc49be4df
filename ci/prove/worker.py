"""`python -m ci.prove.worker NAME`: one property and its twin put to CrossHair; prints both answers as a JSON array."""

import json
import sys

from ci.prove.analysis import decide
from ci.prove.properties import PROPERTIES

__all__: list[str] = []

if __name__ == "__main__":
    print(json.dumps([answer.to_json() for answer in decide(PROPERTIES[sys.argv[1]])]))
