"""Text the model sees, one Markdown file per node."""
