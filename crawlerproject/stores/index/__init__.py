"""Indexes of captures: CDXJ lines and Parquet tables, and what is computed from them."""
