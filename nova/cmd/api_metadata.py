"""nova-api-metadata: serve only the metadata service."""

from nova.cmd import api


def main() -> int:
    """Run nova-api-metadata and return its exit code."""
    return api.serve("nova-api-metadata", [api.METADATA])


if __name__ == "__main__":
    raise SystemExit(main())
