"""A browser for whatever has a page."""

from browsing import browser, open_page

__all__ = ["browser", "open_page"]
