"""The page at /: how all stands, for whoever was woken. docs/page.md says what its parts mean."""
