"""The course that is cut from needle: its stages, their starters and tests, and the tool for them.

Depends on nothing inside needle. `python -m needle_course --help` lists the commands.
"""
