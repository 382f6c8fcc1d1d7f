"""Imports from a read-only layer without asking the file system: a module is found in a packed list of its folder and its
bytecode read from one file, in three system calls instead of a dozen. In gVisor that is a third of a server's start.

A server that waits in asyncio is spared most of its other system calls, too: see `_spare_getpid`.

Everything else is as ever: order of sys.path, names, files, sources, what a loader can be asked for. Folders that are not
packed are searched by Python itself. The packer (src/pack.rs) takes bytecode only where Python would have taken it.
"""


def _spare_getpid(events):
    """Python 3.11 asks for the process's id whenever somebody asks for the running loop, so that a forked child sees none:
    a hundred times for one call of an MCP tool, and in gVisor each time takes longer than all the rest that happens between
    two of them. Here the child itself forgets the loop, as in Python 3.12. What is written in C and asks for itself (a
    future that is made without a loop) still does it the old way.
    """
    import posix
    from _thread import _local

    try:
        set_in_c, get_event_loop_in_c = events._c__set_running_loop, events._c_get_event_loop
    except AttributeError:
        return

    class Running(_local):
        loop = None

    running = Running()

    def get_running_loop():
        """Return the running event loop.  Raise a RuntimeError if there is none."""
        loop = running.loop
        if loop is None:
            raise RuntimeError("no running event loop")
        return loop

    def _get_running_loop():
        """Return the running event loop or None."""
        return running.loop

    def _set_running_loop(loop):
        """Set the running event loop."""
        set_in_c(loop)
        running.loop = loop

    def get_event_loop():
        """Return an asyncio event loop."""
        loop = running.loop
        return get_event_loop_in_c() if loop is None else loop

    def forget():
        running.loop = None

    posix.register_at_fork(after_in_child=forget)
    for function in (get_running_loop, _get_running_loop, _set_running_loop, get_event_loop):
        function.__module__ = events.__name__
        function.__qualname__ = function.__name__
        setattr(events, function.__name__, function)


def _install():
    import marshal, posix, sys
    import _frozen_importlib_external as external
    import _imp

    if sys.flags.optimize:
        return
    folders = {}

    def read(pack, at, size):
        fd = posix.open(pack, posix.O_RDONLY | posix.O_CLOEXEC)
        try:
            return posix.pread(fd, size, at)
        finally:
            posix.close(fd)

    for name in (".weir-packed", ".weir-standard"):
        pack = __file__.rpartition("/")[0] + "/" + name
        try:
            head = read(pack, 0, 8)
            if head[:4] == external.MAGIC_NUMBER:
                size = int.from_bytes(head[4:], "little")
                for folder, names in marshal.loads(read(pack, 8, size)).items():
                    folders[folder] = pack, 8 + size, names
        except (OSError, EOFError, ValueError):
            pass

    class Loader(external.SourceFileLoader):
        place = None

        def get_code(self, fullname):
            if self.place is not None:
                pack, at, size = self.place
                code = read(pack, at, size)
                if len(code) == size:
                    code = marshal.loads(code)
                    _imp._fix_co_filename(code, self.path)
                    return code
            return super().get_code(fullname)

    class EventsLoader(Loader):
        def exec_module(self, module):
            super().exec_module(module)
            _spare_getpid(module)

    loaders = external._get_supported_file_loaders()

    class Finder(external.FileFinder):
        def __init__(self, path):
            if path not in folders:
                raise ImportError("not a packed folder", path=path)
            super().__init__(path, *loaders)
            self.pack, self.base, self.names = folders[path]

        def find_spec(self, fullname, target=None):
            name = fullname.rpartition(".")[2]
            if name not in self.names:
                return None
            found = self.names[name]
            # An extension, a folder without __init__.py, or whatever else the packer left alone.
            if found is None:
                return super().find_spec(fullname, target)
            package, at, size = found
            folder = f"{self.path}/{name}"
            kind = EventsLoader if folder == "/usr/lib/python3.11/asyncio/events" else Loader
            loader = kind(fullname, f"{folder}/__init__.py" if package else f"{folder}.py")
            loader.place = self.pack, self.base + at, size
            return external.spec_from_file_location(
                fullname, loader.path, loader=loader, submodule_search_locations=[folder] if package else None
            )

    if folders:
        sys.path_hooks.insert(0, Finder)
        for path in folders:
            sys.path_importer_cache.pop(path, None)


_install()
del _install
