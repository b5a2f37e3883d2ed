"""Gateway adapters: one file per gateway."""
