"""Sends signals at chosen points of a compilation. Prints what was raised, and whether later compilations work.

Numba fills its tables when a process compiles for the first time, so each case has a process of its own: a child of
this one, which has imported everything and compiled nothing.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import srcdiff
import srcdiff.driver.compiling

HANDLED: list[int] = []


class Timeout(Exception):  # noqa: N818 -- what a handler of a user raises
    pass


def raises(number: int, frame: FrameType | None) -> None:
    raise Timeout


def returns(number: int, frame: FrameType | None) -> None:
    HANDLED.append(number)


def first(x):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * x[i]
    return total


def second(x):
    return x * x * x


HANDLERS = {"default": signal.default_int_handler, "raises": raises, "returns": returns}


def send_at(place: str, count: int, number: int) -> Callable[[Any, str, Any], None]:
    """Send a signal to this process at the given call of the function."""
    left = count

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal left
        if event == "call" and frame.f_code.co_qualname == place:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), number)
                sys.setprofile(None)

    return profile


def compile_in_thread() -> bool:
    """Whether another thread can compile, because the lock was released."""
    done = []
    thread = threading.Thread(target=lambda: done.append(srcdiff.grad(lambda x: x * x, cache=False)(3.0)), daemon=True)
    thread.start()
    thread.join(60)
    return done == [6.0]


def interrupted(place: str, count: int, signal_name: str, handler_name: str) -> dict[str, Any]:
    import numpy as np

    number, handler = getattr(signal, signal_name), HANDLERS[handler_name]
    signal.signal(number, handler)
    gradient = srcdiff.grad(first, cache=False)
    x, raised = np.array([1.0, 2.0]), None
    sys.setprofile(send_at(place, count, number))
    try:
        gradient(x)
    except BaseException as error:
        raised = type(error).__name__
    sent = sys.getprofile() is None
    sys.setprofile(None)
    found = {"sent": sent, "raised": raised, "handled": HANDLED, "restored": signal.getsignal(number) is handler}
    try:
        found["second"] = srcdiff.grad(second, cache=False)(2.0)
        found["first"] = gradient(x).tolist()
        found["thread"] = compile_in_thread()
    except Exception as error:
        found["broken"] = repr(error)
    return found


def waits_for_lock() -> dict[str, Any]:
    """The main thread waits for another one, which compiles for long, and is interrupted."""
    from srcdiff.backends.numba.interrupts import ONE_AT_A_TIME

    held, end, main = threading.Event(), threading.Event(), threading.get_ident()

    def hold() -> None:
        with ONE_AT_A_TIME:
            held.set()
            end.wait(60)

    def interrupt() -> None:
        while not waits_in(main, "lock"):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell ignores it
    gradient = srcdiff.grad(second, cache=False)
    gradient.compile("float64")
    holding = threading.Thread(target=hold)
    holding.start()
    held.wait()
    raised = None
    try:
        threading.Thread(target=interrupt).start()
        gradient.latest.function.compile(("float32",))
    except KeyboardInterrupt:
        raised = "KeyboardInterrupt"
    is_held = holding.is_alive()
    end.set()
    holding.join()
    return {"raised": raised, "is_held": is_held, "second": gradient(2.0)}


def waits_in(thread: int, function: str) -> bool:
    """Whether a thread is in a function of this name."""
    frame = sys._current_frames().get(thread)
    while frame is not None and frame.f_code.co_name != function:
        frame = frame.f_back
    return frame is not None


def in_child(run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with os.fdopen(writing, "w") as pipe:
            json.dump(run(), pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    return json.loads(text) if text else {"status": status}


if __name__ == "__main__":
    moments = json.loads(sys.argv[1])
    found = [in_child(lambda moment=moment: interrupted(*moment)) for moment in moments]
    print(json.dumps([found, in_child(waits_for_lock)]))
