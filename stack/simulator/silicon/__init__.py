"""Making step-time tables from measured kernel times; never needed at run time."""
