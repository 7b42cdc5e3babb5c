"""Standard input, a run's subunit stream, as JSON: a list of {id, status, details}. Runs in tempest's environment."""

from __future__ import annotations

import json
import sys
from typing import Any

import subunit
import testtools


def main() -> None:
    found: list[dict[str, Any]] = []

    def keep(test: dict[str, Any]) -> None:
        texts = {name: content.as_text() for name, content in test["details"].items()
                 if content.content_type.type == "text"}
        found.append({"id": test["id"], "status": test["status"], "details": texts})

    result = testtools.StreamToDict(keep)
    result.startTestRun()
    # tests that print do so in between
    subunit.ByteStreamToStreamResult(sys.stdin.buffer, non_subunit_name="stdout").run(result)
    result.stopTestRun()
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
