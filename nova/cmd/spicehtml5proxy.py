"""nova-spicehtml5proxy: screens of servers in browsers, over SPICE."""

from nova.cmd import console_proxy


def main() -> int:
    """The program nova-spicehtml5proxy; its exit code."""
    return console_proxy.main("nova-spicehtml5proxy")


if __name__ == "__main__":
    raise SystemExit(main())
