"""nova-placement-api: Placement's REST API, over the conductor's ledger."""

from nova.cmd import api

BINARY = "nova-placement-api"


def main() -> int:
    return api.serve(BINARY, [api.PLACEMENT])


if __name__ == "__main__":
    raise SystemExit(main())
