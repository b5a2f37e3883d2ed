"""Business events: their models, the journal that keeps them, their totals, their routes."""
