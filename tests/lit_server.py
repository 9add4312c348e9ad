"""A process that has imported mlirml and runs each command of lit in a fork of itself.

An import of MLIR takes half a second, and lit tests have some 600 commands. Each has a process as elsewhere: the
arguments, folder, files and exit status are those that lit gives it and takes from it.
"""

from __future__ import annotations

import os
import socket
import sys


def serve(address: str) -> None:
    """Run commands until the parent process closes standard input."""
    import contextlib
    import gc
    import io
    import selectors

    import filecheck.main  # noqa: F401

    from mlirml.cli.opt.main import main as mlirml_opt

    with contextlib.redirect_stdout(io.StringIO()):
        mlirml_opt(["--list-passes"])  # imports all passes
    gc.freeze()  # pages that children do not write stay shared
    with socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as selector:
        listener.bind(address)
        listener.listen()
        print("ready", flush=True)
        selector.register(listener, selectors.EVENT_READ)
        selector.register(sys.stdin, selectors.EVENT_READ)
        while all(key.fileobj is listener for key, _ in selector.select()):
            connection, _ = listener.accept()
            with connection:
                message, files, *_ = socket.recv_fds(connection, 1 << 16, 3)
                if os.fork() == 0:
                    _run(connection, files, *message.decode().split("\0"))
                for file in files:
                    os.close(file)
            with contextlib.suppress(ChildProcessError):  # there is none
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass


def _run(connection: socket.socket, files: list[int], folder: str, module: str, *arguments: str) -> None:
    """Run a module as `python -m` does, in this child process, and send its exit status."""
    import runpy
    import traceback

    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    # New ones, as whether a stream can be searched is found out when it is made.
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", 1)  # noqa: SIM115
    os.chdir(folder)
    sys.argv = [module, *arguments]
    status = 0
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    connection.send(bytes([status]))
    os._exit(status)  # with all that the server imported, the end of an interpreter takes as long as its start


def request(address: str, *command: str) -> int:
    """The exit status of a module that the server runs with these arguments, and the files of this process."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        socket.send_fds(connection, ["\0".join([os.getcwd(), *command]).encode()], [0, 1, 2])
        status = connection.recv(1)
    if not status:
        os.abort()  # as the command did
    return status[0]


if __name__ == "__main__":
    if len(sys.argv) == 2:
        serve(sys.argv[1])
    else:
        sys.exit(request(*sys.argv[1:]))
