"""What the books say, done on machines with systemd as their first process: several of them on one wire."""
