"""What would a change do? The simulator, calibrated on what the live metrics show."""
