import Glibc
import TrunklineBytes
import TrunklinePlatform

/// Sends the packets of a trace, each at its own time even if earlier ones were late.
struct TraceSender {
  var packetMilliseconds: Int
  var count: Int

  /// Returns how many were sent more than 2 ms late.
  func send(to address: SocketAddress) throws -> Int {
    let any: IPAddress? = address.ip.family == .v4 ? IPAddress("0.0.0.0") : IPAddress("::")
    guard let any else { return 0 }
    let socket = try UDPSocket(bind: SocketAddress(any, 0))
    let began = MonotonicClock.now() + .milliseconds(20)
    var late = 0
    for number in 0..<count {
      let due = began + .milliseconds(number * packetMilliseconds)
      var time = timespec(tv_sec: Int(due.nanoseconds / 1_000_000_000), tv_nsec: Int(due.nanoseconds % 1_000_000_000))
      while clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nil) == EINTR {}
      let now = MonotonicClock.now()
      if now - due > .milliseconds(2) { late += 1 }
      let packet = TracePacket(number: number, count: count, packetMilliseconds: packetMilliseconds, sent: now.nanoseconds)
      // A packet that the network refuses, and an error that it reports for the far end, count as a loss.
      _ = try? socket.send(packet.datagram, to: address)
    }
    return late
  }
}
