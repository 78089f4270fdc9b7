#if os(Linux) && !APPLE_SURFACE
  import Foundation
  import Glibc
  import Synchronization

  /// Linux: the kernel reports when an address is added or removed, or a link changes (rtnetlink(7)).
  public final class AddressMonitor: PathMonitor {
    private struct State {
      var stop: Int32?
      var isStopped = false
    }
    /// Several changes belong to one move: they are reported once.
    private static let pause = Duration.milliseconds(100)
    private let state = Mutex(State())

    /// Watches nothing until ``start(_:)``.
    public init() {}

    public func start(_ changed: @escaping @Sendable () -> Void) {
      // no module has sockaddr_nl: family, two bytes of padding, port, groups
      let groups: UInt32 = 0x1 | 0x10 | 0x100  // RTMGRP_LINK, RTMGRP_IPV4_IFADDR, RTMGRP_IPV6_IFADDR
      let netlink = socket(16, Int32(SOCK_RAW.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
      var ends: [Int32] = [0, 0]
      guard netlink >= 0, pipe(&ends) == 0 else {
        if netlink >= 0 { close(netlink) }
        return
      }
      for fd in ends { _ = fcntl(fd, F_SETFD, FD_CLOEXEC) }
      var address = sockaddr_storage()
      withUnsafeMutableBytes(of: &address) { bytes in
        bytes.storeBytes(of: 16, as: UInt16.self)
        bytes.storeBytes(of: groups, toByteOffset: 8, as: UInt32.self)
      }
      let isBound = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(netlink, $0, 12) == 0 }
      }
      let (read, write) = (ends[0], ends[1])
      let isOn = state.withLock { state -> Bool in
        guard isBound, !state.isStopped, state.stop == nil else { return false }
        state.stop = write
        return true
      }
      guard isOn else {
        for fd in [netlink, read, write] { close(fd) }
        return
      }
      let thread = Thread {
        Self.watch(netlink, until: read, changed)
        close(netlink)
        close(read)
      }
      thread.name = "path-monitor"
      thread.start()
    }

    /// Closing the pipe's other end stops the thread.
    public func stop() {
      let end = state.withLock { state -> Int32? in
        defer { (state.stop, state.isStopped) = (nil, true) }
        return state.stop
      }
      if let end { close(end) }
    }

    private static func watch(_ netlink: Int32, until stop: Int32, _ changed: @Sendable () -> Void) {
      var polls = [pollfd(fd: netlink, events: Int16(POLLIN), revents: 0), pollfd(fd: stop, events: Int16(POLLIN), revents: 0)]
      var buffer = [UInt8](repeating: 0, count: 8_192)
      var isPending = false
      var known = usableAddresses()
      while true {
        let ready = poll(&polls, 2, isPending ? Int32(pause.components.attoseconds / 1_000_000_000_000_000) : -1)
        if polls[1].revents != 0 { return }
        if ready == 0, isPending {
          isPending = false
          // a link that has just come up has addresses that cannot be used yet
          let now = usableAddresses()
          if now != known { changed() }
          known = now
        }
        while recv(netlink, &buffer, buffer.count, 0) > 0 { isPending = true }
      }
    }
  }
#endif
