"""A receiver behind HTTP: one account, on a free port of the loopback, in a process of its own.

It stops at the end of its standard input, so that it never outlives whoever started it.
"""

import signal
import socket
import threading
import time
from contextlib import closing, suppress
from functools import partial
from http.server import ThreadingHTTPServer
from queue import SimpleQueue

from . import ledger
from .options import Options
from .talk import Talk
from .turns import Turns

STOP_S = 2.0  # how long requests on their way may take to finish, once the server stops
LAST_S = 0.5  # and how long after their connections were cut
POLL_S = 0.02  # how often the server looks whether it is to stop


def main(argv, say):
    """Serve until end of file or a signal; 0, or 2 if the words or the file are refused."""
    stops = SimpleQueue[str]()  # into which a signal handler may put
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stops.put("a signal"))
    try:
        options = Options(argv)
        if options.identity is not None:
            ledger.create(options.path, options.identity)
        stays_open = ledger.open_file(options.path)
    except (ledger.Refused, ValueError) as error:
        say({"reply": "error", "why": str(error)})
        return 2
    with closing(stays_open):  # else the end of each request would tidy up the file
        identity, epoch = ledger.who(stays_open)
        turns = Turns(say)
        server = _Server(options, turns)
        server.begin()
        url = f"http://127.0.0.1:{server.server_port}"
        say({"reply": "listening", "url": url, "identity": identity, "epoch": epoch})
        threading.Thread(target=_listen, args=(turns, stops), daemon=True).start()
        stops.get()
        turns.stop()
        server.end()
    return 0


def _listen(turns, stops):
    """Permits, line by line. The end of the input stops the server."""
    # Without a buffer, whose lock would hold up an exit.
    with suppress(OSError), open(0, "rb", buffering=0, closefd=False) as lines:
        for line in lines:
            turns.permit(line)
    stops.put("end of file")


class _Server(ThreadingHTTPServer):
    """Knows the threads and connections of its requests, so that it can end them in time."""

    request_queue_size = 128

    def __init__(self, options, turns):
        self._talks, self._lock = {}, threading.Lock()
        super().__init__(("127.0.0.1", 0), partial(Talk, options=options, turns=turns))
        self._accepts = threading.Thread(target=self.serve_forever, args=(POLL_S,), daemon=True)

    def server_bind(self):
        """Without the look for a host name, which may ask the network."""
        self.socket.bind(self.server_address)
        self.server_name, self.server_port = self.socket.getsockname()

    def begin(self):
        """Accept connections from now on."""
        self._accepts.start()

    def end(self):
        """Accept no more; let requests finish, within a bound; then drop what is left."""
        self.shutdown()
        self.server_close()
        for how, limit_s in ((socket.SHUT_RD, STOP_S), (socket.SHUT_RDWR, LAST_S)):
            deadline = time.monotonic() + limit_s
            with self._lock:
                talks = list(self._talks.items())
            for _, connection in talks:
                with suppress(OSError):
                    connection.shutdown(how)
            for thread, _ in talks:
                thread.join(max(0.0, deadline - time.monotonic()))

    def process_request(self, request, client_address):
        """Answer in a thread of its own, which is known until it ends."""
        words = (request, client_address)
        thread = threading.Thread(target=self.process_request_thread, args=words, daemon=True)
        with self._lock:
            self._talks[thread] = request
        thread.start()

    def process_request_thread(self, request, client_address):
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                del self._talks[threading.current_thread()]

    def handle_error(self, request, client_address):
        """Nothing: a client that went away is no news, and its connection is closed."""
