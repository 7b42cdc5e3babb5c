"""nova-placement-api: Placement's REST API, based on the conductor's ledger."""

from nova.cmd import api

BINARY = "nova-placement-api"


def main() -> int:
    """Run nova-placement-api and return its exit code."""
    return api.serve(BINARY, [api.PLACEMENT])


if __name__ == "__main__":
    raise SystemExit(main())
