"""Datagrams with the kernel's time of arrival: a busy program reads them late."""
import socket, struct, time

SO_TIMESTAMPNS = 35  # Linux; Python has no name for it


def opened(host):
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    end.bind((host, 0))
    end.setblocking(False)
    return end


def waiting(end):
    """(octets, seconds since 1970, source) of each datagram that is there."""
    while True:
        try:
            data, ancillary, _, source = end.recvmsg(2048, 64)
        except (BlockingIOError, ConnectionRefusedError):
            return
        at = time.time()
        for level, kind, value in ancillary:
            if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS:
                seconds, nanoseconds = struct.unpack("qq", value)
                at = seconds + nanoseconds * 1e-9
        yield data, at, source
