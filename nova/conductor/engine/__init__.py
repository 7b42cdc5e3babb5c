"""What carries operations out: workflows, their runner and journal, and what all stories lean on."""
