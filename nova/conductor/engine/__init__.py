"""The engine: workflows, their runner and journal, and notifications of what they do."""
