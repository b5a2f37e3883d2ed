"""Settings: flags > environment > file > defaults, and their faults told at once."""
