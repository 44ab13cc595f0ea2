"""The operator's commands, one a file, under Scrapy's ``COMMANDS_MODULE``; ``base`` holds what they share.

A command reads its arguments, asks one of the rooms below, and prints. Nothing imports a command.
"""
