"""Downloader middlewares: they decide early. What must hold whatever a spider's settings say is in ``guard/``."""
