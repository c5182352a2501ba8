# SPDX-License-Identifier: Apache-2.0
"""Calls that measure, and that Ctrl-C ends at any time.

Python runs signal handlers in the main thread, and only between two instructions of Python. So the library's call runs
in another thread. The main thread waits for it in Python, where a handler may raise at once. Then options.cancel ends
the call between two of its steps. A step may take long, so the main thread waits only a moment for that."""
import ctypes
import queue
import threading

PATIENCE = 0.3  # seconds


def call(function, options, visit=None):
    """Returns function(callback), or raises what it raises. `options` is the PlanOptions that function uses.

    Where function calls callback(*arguments), the thread that called this runs visit(*arguments). A true result, or an
    exception, which this then raises, tells the library to stop. A result of function that comes after an exception is
    closed by its method close(), if it has one."""
    if threading.current_thread() is not threading.main_thread():
        return _call_here(function, visit)
    return _Call(options).wait(function, visit)


def _call_here(function, visit):
    raised = []

    def callback(*arguments):
        try:
            return int(bool(visit and visit(*arguments)))
        except BaseException as error:
            raised.append(error)
            return 1

    result = _outcome(function, callback)
    if raised:
        raise raised[0]
    return _unwrap(result)


def _outcome(function, callback):
    try:
        return function(callback), None
    except BaseException as error:
        return None, error


def _unwrap(outcome):
    result, error = outcome
    if error is not None:
        raise error
    return result


class _Call:
    def __init__(self, options):
        self.cancel = ctypes.c_int(0)
        options.cancel = ctypes.addressof(self.cancel)
        self.options = options
        self.requests, self.answers = queue.SimpleQueue(), queue.SimpleQueue()
        self.ended = threading.Lock()  # the outcome is either taken by the main thread or thrown away by the other
        self.abandoned = False

    def wait(self, function, visit):
        thread = threading.Thread(target=self._run, args=(function, visit), name="conv_fft measuring")
        try:
            thread.start()
            while True:
                arguments, outcome = self.requests.get()
                if outcome is not None:
                    return _unwrap(outcome)
                self.answers.put(int(bool(visit(*arguments))))
        except BaseException:
            self.cancel.value = 1
            with self.ended:
                self.abandoned = True
            self.answers.put(1)
            if thread.ident is not None:
                thread.join(PATIENCE)
            self._throw_away()
            raise

    def _run(self, function, visit):
        def callback(*arguments):
            if visit is None or self.cancel.value:
                return self.cancel.value
            self.requests.put((arguments, None))
            return self.answers.get()

        outcome = _outcome(function, callback)
        with self.ended:
            self.requests.put(((), outcome))
            abandoned = self.abandoned
        if abandoned:
            self._throw_away()

    def _throw_away(self):
        """Close the results that nobody takes."""
        while True:
            try:
                _, outcome = self.requests.get_nowait()
            except queue.Empty:
                return
            close = getattr(outcome and outcome[0], "close", None)
            if close:
                close()
