"""Installed in empty places: an environment, a Debian root, a container, a system that systemd has booted."""
