"""Layers as dataclasses: parameters are fields, options are static fields, and nothing else is kept."""
