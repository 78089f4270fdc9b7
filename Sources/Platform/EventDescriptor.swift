import CTrunklineLinux
import Glibc

/// An eventfd: a thread sleeps on it and others wake it. `signal` may be called from any thread.
public final class EventDescriptor: Sendable {
  /// For epoll or poll; owned by this object.
  public let fd: Int32

  public init() throws(SystemError) {
    fd = eventfd(0, Int32(EFD_NONBLOCK) | Int32(EFD_CLOEXEC))
    guard fd >= 0 else { throw SystemError("make an eventfd") }
  }

  public func signal() {
    var one: UInt64 = 1
    _ = write(fd, &one, 8)
  }

  /// Clears all signals so far, so that `fd` is no longer readable.
  public func clear() {
    var value: UInt64 = 0
    _ = read(fd, &value, 8)
  }

  /// Sleeps until a signal or the end of `milliseconds` (negative: no limit). True if there is a signal.
  public func wait(milliseconds: Int32) -> Bool {
    var poll = pollfd(fd: fd, events: Int16(POLLIN), revents: 0)
    return Glibc.poll(&poll, 1, milliseconds) > 0
  }

  deinit { close(fd) }
}
