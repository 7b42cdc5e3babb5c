"""nova-serialproxy: serial ports of servers, in a page or by a program."""

from nova.cmd import console_proxy


def main() -> int:
    """The program nova-serialproxy; its exit code."""
    return console_proxy.main("nova-serialproxy")


if __name__ == "__main__":
    raise SystemExit(main())
