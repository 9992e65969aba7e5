"""One mechanism of failure a module; `catalog.py` lists them."""
