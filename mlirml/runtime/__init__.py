"""Running compiled programs: the native thread pool, loader and call path."""
