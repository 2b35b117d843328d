"""Processes that run one function, and whose exceptions are raised here."""
import multiprocessing
import multiprocessing.connection
import pickle
import signal
import sys
import tempfile
import traceback


class ProcessException(Exception):
    def __init__(self, msg, error_index, pid):
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """A process failed by an exception."""


class ProcessExitedException(ProcessException):
    """A process ended by a signal or an exit code."""

    def __init__(self, msg, error_index, error_pid, exit_code, signal_name=None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def _run(fn, i, args, error_file):
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        with open(error_file, "wb") as file:
            pickle.dump(traceback.format_exc(), file)
        sys.exit(1)


class ProcessContext:
    """The processes of spawn(join=False)."""

    def __init__(self, processes, error_files):
        self.processes, self.error_files = processes, error_files
        self.sentinels = {p.sentinel: i for i, p in enumerate(processes)}

    def pids(self):
        return [int(p.pid) for p in self.processes]

    def join(self, timeout=None, grace_period=None):
        """Waits for a process to end; True when all have ended. Raises if one failed, after ending the
        others.
        """
        if not self.sentinels:
            return True
        failed = None
        for sentinel in multiprocessing.connection.wait(list(self.sentinels), timeout):
            index = self.sentinels.pop(sentinel)
            self.processes[index].join()
            if self.processes[index].exitcode != 0:
                failed = index
                break
        if failed is None:
            return not self.sentinels
        for p in self.processes:
            if p.is_alive():
                p.terminate()
        for p in self.processes:
            p.join(grace_period)
            if p.is_alive():
                p.kill()
                p.join()
        self._raise(failed)

    def _raise(self, index):
        process = self.processes[index]
        with open(self.error_files[index], "rb") as file:
            text = file.read()
        if text:
            raise ProcessRaisedException(f"\n\n-- Process {index} terminated with the following error:\n"
                                         f"{pickle.loads(text)}", index, process.pid)
        if process.exitcode < 0:
            name = signal.Signals(-process.exitcode).name
            raise ProcessExitedException(f"process {index} terminated with signal {name}", index, process.pid,
                                         process.exitcode, name)
        raise ProcessExitedException(f"process {index} terminated with exit code {process.exitcode}", index,
                                     process.pid,
                                     process.exitcode)


class SpawnContext(ProcessContext):
    pass


def start_processes(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn", **options):
    """Runs fn(i, *args) in nprocs processes. join: waits for them, else returns their ProcessContext."""
    context = multiprocessing.get_context(start_method)
    processes, files = [], []
    for i in range(nprocs):
        file = tempfile.NamedTemporaryFile(prefix="flambeau-error-")
        files.append(file)
        process = context.Process(target=_run, args=(fn, i, args, file.name), daemon=daemon)
        process.start()
        processes.append(process)
    started = SpawnContext(processes, [f.name for f in files])
    started._files = files
    if not join:
        return started
    while not started.join():
        pass


def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """As start_processes."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)
