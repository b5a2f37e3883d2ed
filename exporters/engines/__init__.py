"""Engine adapters: one file per engine."""
