"""Did the change help? Blocks of measurements before and after, and what becomes of the change."""
