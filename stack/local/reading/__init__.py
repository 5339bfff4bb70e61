"""What a live stack tells: windows from Prometheus or own scrapes, device figures, values in force, recordings."""
