"""One file a story: what is refused at once, its own steps, the workflow and its endings, top to bottom."""
