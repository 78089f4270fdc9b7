import BenchKit
import CTrunklineLinux
import Glibc

/// CLOCK_MONOTONIC in nanoseconds.
func monotonicNanoseconds() -> UInt64 {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

func milliseconds(_ from: UInt64, _ to: UInt64) -> Double { Double(to) / 1e6 - Double(from) / 1e6 }

/// The load's sockets, all on the bench's own thread.
final class Reactor {
  struct Interest: OptionSet {
    let rawValue: UInt32
    static let read = Interest(rawValue: EPOLLIN.rawValue)
    static let write = Interest(rawValue: EPOLLOUT.rawValue)
  }
  private let epoll = epoll_create1(0)
  private var handlers: [Int32: () -> Void] = [:]
  private var events = [epoll_event](repeating: epoll_event(), count: 512)

  deinit { close(epoll) }

  func add(_ fd: Int32, _ interest: Interest, _ handler: @escaping () -> Void) {
    handlers[fd] = handler
    var event = epoll_event(events: interest.rawValue, data: epoll_data(fd: fd))
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event)
  }

  func change(_ fd: Int32, _ interest: Interest) {
    var event = epoll_event(events: interest.rawValue, data: epoll_data(fd: fd))
    epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event)
  }

  /// The caller closes it.
  func remove(_ fd: Int32) {
    handlers[fd] = nil
    epoll_ctl(epoll, EPOLL_CTL_DEL, fd, nil)
  }

  /// Serves the sockets until `isDone`, for `seconds` at most. `step` is called between turns, at least each millisecond.
  @discardableResult func run(for seconds: Double, until isDone: () -> Bool = { false }, step: () -> Void = {}) -> Bool {
    let end = monotonicNanoseconds() + UInt64(seconds * 1e9)
    while true {
      step()
      if isDone() { return true }
      guard monotonicNanoseconds() < end else { return false }
      let count = epoll_wait(epoll, &events, Int32(events.count), 1)
      for index in 0..<max(0, Int(count)) { handlers[events[index].data.fd]?() }
    }
  }

  /// Does `count` things at a rate, and serves the sockets meanwhile and for up to `linger` seconds after.
  func pace(_ count: Int, perSecond: Double, linger: Double, until isDone: () -> Bool, _ act: (Int) -> Void) {
    let begin = monotonicNanoseconds()
    var next = 0
    run(for: Double(count) / perSecond + linger, until: { next == count && isDone() }) {
      let due = min(count, Int(Double(monotonicNanoseconds() - begin) / 1e9 * perSecond) + 1)
      while next < due {
        act(next)
        next += 1
      }
    }
  }
}

/// Ahead of what else runs, where that is permitted: what else this machine does must not be taken for a gateway's lateness.
func runAhead() -> Bool {
  var parameters = sched_param(sched_priority: 1)
  return sched_setscheduler(0, SCHED_RR | 0x4000_0000, &parameters) == 0  // SCHED_RESET_ON_FORK: children run as ever
}

func bound(_ kind: __socket_type, _ host: String) throws -> (fd: Int32, port: UInt16) {
  let fd = socket(AF_INET, Int32(kind.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
  var room: Int32 = 4 * 1_024 * 1_024
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, socklen_t(MemoryLayout<Int32>.size))
  var address = loopbackAddress(0)
  guard inet_pton(AF_INET, host, &address.sin_addr) == 1 else { throw BenchError(text: "\(host) is not an address") }
  var length = socklen_t(MemoryLayout<sockaddr_in>.size)
  let isBound = withUnsafeMutablePointer(to: &address) { pointer in
    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(fd, $0, length) == 0 && getsockname(fd, $0, &length) == 0 }
  }
  guard isBound else {
    close(fd)
    throw BenchError(text: "\(host) cannot be bound")
  }
  return (fd, UInt16(bigEndian: address.sin_port))
}

func randomHex(_ count: Int) -> String { String((0..<count).map { _ in "0123456789abcdef".randomElement() ?? "0" }) }
func randomUUID() -> String {
  "\(randomHex(8))-\(randomHex(4))-4\(randomHex(3))-a\(randomHex(3))-\(randomHex(12))"
}
