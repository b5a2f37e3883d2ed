"""GPU telemetry."""
