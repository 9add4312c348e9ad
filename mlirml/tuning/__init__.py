"""The tuner: schedules of products and loops that are measured, and kept in a file that is shared (docs/tuning.md)."""
