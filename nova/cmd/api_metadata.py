"""nova-api-metadata: the metadata service alone."""

from nova.cmd import api


def main() -> int:
    """The program nova-api-metadata; its exit code."""
    return api.serve("nova-api-metadata", [api.METADATA])


if __name__ == "__main__":
    raise SystemExit(main())
