"""nova-spicehtml5proxy: graphical consoles in browsers, over SPICE."""

from nova.cmd import console_proxy


def main() -> int:
    """Run nova-spicehtml5proxy and return its exit code."""
    return console_proxy.main("nova-spicehtml5proxy")


if __name__ == "__main__":
    raise SystemExit(main())
