"""Appends what comes by TCP to a file.

    collector.py 10514 /tmp/collected"""

import socketserver, sys


class Collect(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(65536):
            with open(sys.argv[2], "ab") as out:
                out.write(data)


socketserver.ThreadingTCPServer.allow_reuse_address = True
socketserver.ThreadingTCPServer.daemon_threads = True
with socketserver.ThreadingTCPServer(("127.0.0.1", int(sys.argv[1])), Collect) as server:
    print('{"event": "listening"}', flush=True)
    server.serve_forever()
