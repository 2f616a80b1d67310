"""The bundled demo shop: a real local site to crawl without bothering anybody. `python -m shoal.demo` opens it."""

from shoal.demo.shop import DemoShop

__all__ = ["DemoShop"]
