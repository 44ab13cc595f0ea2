"""Downloader middlewares. What must hold whatever a spider's settings say is not here but in ``guard/``."""
