"""Writes docs/reference/proofs.md: what is proved of the model, for which values, and how to read it.

`python -m ci.prove.page` writes the page, `python -m ci.prove.page --check` fails when it is stale.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ci.prove.contract import Property
from ci.prove.properties import PROPERTIES

__all__ = ["PAGE", "main", "text"]

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "reference" / "proofs.md"

HEAD: Final = """# What is proved of the model

Generated from the declarations in `ci/prove/properties` by `python -m ci.prove.page`; a test fails when it is
stale.

```console
$ make prove                                              # all of them
$ make prove PROVE_ARGS="--json"                          # with claims, paths, times and counterexamples
$ make prove PROVE_ARGS="drain_takes_all_or_the_oldest"   # some of them
```

Each line below is a property of one function of `restartpoint_reference`.
[CrossHair](https://crosshair.readthedocs.io) runs the function with symbolic arguments, follows every path that
they can take, and asks an SMT solver at each branch which ways are open. Every property has a *faulty twin*:
another version of the same function with one seeded fault. The same property, with the same preconditions, is put
to the twin in the same run, and has to be refuted by a counterexample. So no property holds for want of anything to
check. The run fails when one property is not confirmed, or one twin is not refuted.

## What the verdicts mean

- **confirmed over all paths**: every path was followed to its end, and the property held on each of them.
- **refuted**: there are arguments for which the property is false; they are printed with `--json`.
- **undecided**: no counterexample was found, but some path was not followed to its end within 100 seconds of
  processor time for each search (500 seconds of the clock for a property and its twin). This is no proof and counts
  as failure.
- **raised**: the function or the property raised. This is no proof, and does not count as the refutation of a twin.
- **broken**: the contract cannot be read, or nothing fulfils its precondition.

## What is not proved

- *Confirmed* speaks of the arguments in the column *symbolic*, and of nothing else. Where it says *every integer*,
  the integers are unbounded. Where it lists a few values or says how many of something there are, those few are
  all: the proof is then an exhaustive case distinction within these bounds, not a proof for every session.
- What the column *fixed* names has one value in all paths. States are built from a few small choices (an inbox of
  zero to two items in each list, a batch of two or three calls); none is an arbitrary value of the type `State`.
- A proof is as good as its property. That each property tells its own twin apart is checked; that no other fault
  passes it is not. Random walks, the exploration of the model and mutation testing look for those.
- CrossHair and its solver are trusted. So is the ordinary run of Python: CrossHair models integers, strings and
  tuples symbolically and runs regular expressions and hashing with the concrete values of a path.

## How long it takes

`make prove` took 350 seconds of the clock for 48 properties and their twins, on two cores (Python 3.11.7, CrossHair
0.0.113) that had other work to do at the same time, and 175 seconds of processor time in the searches. The longest,
`transaction_is_all_or_none`, took 33 of these. Two processes run at a time, one for each property and its twin.

The properties marked *quick* are decided in a second or two each and run in `make test` as well. There, a search
that does not end in time is skipped with the reason printed, and a refutation fails. Time is measured in seconds of
processor time, so that a busy machine does not change a verdict.

## The properties
"""


def text() -> str:
    """The whole page: what a proof is, then every property as it is declared."""
    rows = [
        "| Function | Property | § | Claim | Symbolic | Fixed | Faulty twin |",
        "|---|---|---|---|---|---|---|",
        *map(_row, PROPERTIES.values()),
    ]
    return HEAD + "\n" + "\n".join(rows) + "\n"


def _row(found: Property) -> str:
    name = f"`{found.name}`" + (" (quick)" if found.quick else "")
    cells = (f"`{found.function}`", name, found.section, found.claim, found.symbolic, found.fixed, found.fault)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def main(arguments: Sequence[str]) -> int:
    """Write or check the page; 1 when `--check` found it stale."""
    made = text()
    if "--check" in arguments:
        stale = not PAGE.exists() or PAGE.read_text(encoding="utf-8") != made
        if stale:
            print(f"stale: {PAGE}; run `python -m ci.prove.page`")
        return int(stale)
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
