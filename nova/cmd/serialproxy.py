"""nova-serialproxy: serial consoles, in a web page or for a client program."""

from nova.cmd import console_proxy


def main() -> int:
    """Run nova-serialproxy and return its exit code."""
    return console_proxy.main("nova-serialproxy")


if __name__ == "__main__":
    raise SystemExit(main())
