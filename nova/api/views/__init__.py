"""Views of responses, one module for each noun."""
