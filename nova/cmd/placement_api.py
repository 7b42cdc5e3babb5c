"""nova-placement-api: Placement's REST API, over the conductor's ledger."""

from nova.cmd import api

BINARY = "nova-placement-api"


def main() -> int:
    """The program nova-placement-api; its exit code."""
    return api.serve(BINARY, [api.PLACEMENT])


if __name__ == "__main__":
    raise SystemExit(main())
