"""The driver's service, which tasks ask for markers over one authenticated connection a process.

    client -> line -> call ==> frame, auth, wire ==> connection -> server -> create(instant, paths, io)

``MarkerClient`` and ``client_for`` block and are for tasks; ``MarkerServer`` runs on the driver's event loop. How
markers are made durable is not known here: the server is given a callable. What travels is decided by ``wire``,
``frame`` and ``auth`` without I/O; ``conversation`` decides, without I/O, what a client sends again.
"""
