"""``python -m nova.migrationproxy gate|tunnel``: told a plan on its standard input (JSON, one line), answers with one
line when it is ready, and goes on by itself."""

from nova.migrationproxy.process import main

main()
