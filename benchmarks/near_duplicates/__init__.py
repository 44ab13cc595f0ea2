"""Precision and recall of SimHash settings on real pages."""
