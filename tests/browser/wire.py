"""A network connection between browser and server that can be cut or silenced."""

import contextlib
import selectors
import socket
import threading


class Wire:
    """Hands on what comes at its port. Where it is silent, connections stay and deliver nothing; where it is cut, none is had."""

    def __init__(self, port: int) -> None:
        self._server_port = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._goes = threading.Event()
        self._goes.set()
        self._is_cut = self._is_over = False
        # Connections of an earlier number are dead without a notice.
        self._number = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """End all connections, and refuse others."""
        self._is_cut = True
        self._end_pairs()

    def silence(self) -> None:
        """Deliver nothing any more, without closing connections."""
        self._goes.clear()

    def mend(self, *, lost: bool = False) -> None:
        """Let everything through again, also what waited, unless it is lost with its connections."""
        self._number += lost
        self._is_cut = False
        self._goes.set()

    def close(self) -> None:
        self._is_over = True
        self._listening.close()
        self._end_pairs()
        self._goes.set()

    def _end_pairs(self) -> None:
        for pair in self._pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while not self._is_over:
            try:
                here, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(here, self._number), daemon=True).start()

    def _carry(self, here: socket.socket, number: int) -> None:
        self._goes.wait()
        with here, contextlib.suppress(OSError):
            if self._is_cut or number != self._number:
                return
            with socket.create_connection(("127.0.0.1", self._server_port)) as there:
                self._pairs.append((here, there))
                self._hand_on(here, there, number)

    def _hand_on(self, here: socket.socket, there: socket.socket, number: int) -> None:
        chooser = selectors.DefaultSelector()
        chooser.register(here, selectors.EVENT_READ, there)
        chooser.register(there, selectors.EVENT_READ, here)
        while not self._is_over:
            for key, _ in chooser.select(1.0):
                self._goes.wait()
                if number != self._number:
                    # As a wire that ends nowhere: it takes what is sent and answers nothing.
                    threading.Event().wait()
                data = key.fileobj.recv(1 << 16)
                if not data:
                    return
                key.data.sendall(data)
