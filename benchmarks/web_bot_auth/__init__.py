"""Signatures of real crawls before verifiers that others wrote."""
