"""The functions of `heapq` and `bisect` in Python, which are captured as those of the user's are.

Each takes a comparison first. A heap has the order of items that `heapq` gives it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_Less = Callable[[Any, Any], Any]


def heappush(less: _Less, heap: Any, item: Any) -> None:
    heap.append(item)
    _rise(less, heap, 0, len(heap) - 1)


def heappop(less: _Less, heap: Any) -> Any:
    last = heap.pop()
    if len(heap) > 0:
        first = heap[0]
        heap[0] = last
        _sink(less, heap, 0)
        return first
    return last


def heapreplace(less: _Less, heap: Any, item: Any) -> Any:
    first = heap[0]
    heap[0] = item
    _sink(less, heap, 0)
    return first


def heappushpop(less: _Less, heap: Any, item: Any) -> Any:
    if len(heap) > 0 and less(heap[0], item):
        first = heap[0]
        heap[0] = item
        _sink(less, heap, 0)
        return first
    return item


def heapify(less: _Less, heap: Any) -> None:
    for position in range(len(heap) // 2 - 1, -1, -1):
        _sink(less, heap, position)


def _rise(less: _Less, heap: Any, start: Any, position: Any) -> None:
    item = heap[position]
    while position > start:
        parent = (position - 1) >> 1
        above = heap[parent]
        if not less(item, above):
            break
        heap[position] = above
        position = parent
    heap[position] = item


def _sink(less: _Less, heap: Any, position: Any) -> None:
    start, end, item = position, len(heap), heap[position]
    child = 2 * position + 1
    while child < end:
        if child + 1 < end and not less(heap[child], heap[child + 1]):
            child = child + 1
        heap[position] = heap[child]
        position = child
        child = 2 * position + 1
    heap[position] = item
    _rise(less, heap, start, position)


def bisect_right(less: _Less, a: Any, x: Any, lo: Any = 0, hi: Any = None) -> Any:
    low, high = lo, len(a) if hi is None else hi
    while low < high:
        middle = (low + high) // 2
        if less(x, a[middle]):
            high = middle
        else:
            low = middle + 1
    return low


def bisect_left(less: _Less, a: Any, x: Any, lo: Any = 0, hi: Any = None) -> Any:
    low, high = lo, len(a) if hi is None else hi
    while low < high:
        middle = (low + high) // 2
        if less(a[middle], x):
            low = middle + 1
        else:
            high = middle
    return low


def insort_right(less: _Less, a: Any, x: Any, lo: Any = 0, hi: Any = None) -> None:
    a.insert(bisect_right(less, a, x, lo, hi), x)


def insort_left(less: _Less, a: Any, x: Any, lo: Any = 0, hi: Any = None) -> None:
    a.insert(bisect_left(less, a, x, lo, hi), x)
