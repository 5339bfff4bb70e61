class PerfDataNotAvailableError(RuntimeError):
    pass
