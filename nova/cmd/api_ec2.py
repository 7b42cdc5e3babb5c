"""nova-api-ec2: the EC2 API alone."""

from nova.cmd import api


def main() -> int:
    """The program nova-api-ec2; its exit code."""
    return api.serve("nova-api-ec2", [api.EC2])


if __name__ == "__main__":
    raise SystemExit(main())
