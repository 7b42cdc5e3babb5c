"""Write the golden files of contracts and wire values that are new.

    python tests/golden/regenerate.py [--same-version]

A contract that changed needs a new version first (see the docstring of ``nova.rpc.contracts``); then its new file is
written beside the old ones. ``--same-version`` writes over what was never released.
"""

from __future__ import annotations

import json
import pathlib
import sys

import msgspec

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from tests.golden import shapes  # noqa: E402


def write_contracts(same_version: bool) -> list[str]:
    """The complaints about contracts that changed without a new version."""
    complaints = []
    for contract in shapes.contracts():
        shape = shapes.shape_of_contract(contract)
        path = shapes.CONTRACTS / f"{contract.__name__}-{contract.version}.json"
        changed = path.exists() and shapes.differences(json.loads(path.read_text()), shape)
        if changed and not same_version:
            complaints.append(f"{contract.__name__} changed: bump the version, which is {contract.version}\n  "
                              + "\n  ".join(changed))
        else:
            _write(path, shapes.to_json(shape))
    return complaints


def write_values(same_version: bool) -> None:
    for kind in shapes.values():
        text = shapes.to_json(json.loads(msgspec.json.encode(shapes.example(kind))))
        files = shapes.value_files(kind.__name__)
        if files and (same_version or files[-1].read_text() == text):
            _write(files[-1], text)
        else:
            _write(shapes.VALUES / kind.__name__ / f"{len(files) + 1}.json", text)


def _write(path: pathlib.Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        print(f"wrote {path.relative_to(shapes.HERE)}")


def main(arguments: list[str]) -> int:
    if set(arguments) - {"--same-version"}:
        print(__doc__)
        return 2
    same_version = bool(arguments)
    complaints = write_contracts(same_version)
    if complaints:
        print("\n".join(complaints))
        return 1
    write_values(same_version)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
