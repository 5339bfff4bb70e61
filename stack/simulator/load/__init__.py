"""What the simulated fleet is asked to serve."""
