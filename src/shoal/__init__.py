"""Shoal: a polite, distributed web-scraping platform. One script on SQLite, or a fleet, with the same code."""

from shoal.errors import Drop, Retry
from shoal.page import Page
from shoal.request import Request
from shoal.scraper import Scraper

__version__ = "0.1.0"

__all__ = ["Drop", "Page", "Request", "Retry", "Scraper", "__version__"]
