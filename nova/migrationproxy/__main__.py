"""``python -m nova.migrationproxy gate|tunnel``: reads a plan from its standard input (JSON, one line), writes one line
when it is ready, and continues in the background."""

from nova.migrationproxy.process import main

main()
