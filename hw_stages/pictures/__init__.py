"""The pictures of the handouts, drawn from real values of the framework as SVG.

`python -m hw_stages.pictures --out DIR [NAME ...]` writes them, the same bytes each time.
"""
