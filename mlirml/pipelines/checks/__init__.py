"""Checks of indices and assertions: where they are made, left out, collected, and how they fail."""
