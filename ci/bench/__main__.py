"""Prints every figure as one JSON line. Usage: ``python -m ci.bench [NAME ...] [--quick]``."""

from __future__ import annotations

import argparse
import importlib
import json
import sys

PARTS = ("storage_jsonl", "storage_sqlite", "opening", "prompts", "audit", "judging")


def main() -> int:
    """Run the named parts, or all of them."""
    parser = argparse.ArgumentParser(prog="python -m ci.bench", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help=f"which of {', '.join(PARTS)}; all by default")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and shorter histories")
    arguments = parser.parse_args()
    for name in arguments.parts or PARTS:
        for row in importlib.import_module(f"ci.bench.{name}").run(quick=arguments.quick):
            print(json.dumps(row), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
