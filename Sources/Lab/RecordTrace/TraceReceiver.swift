import Glibc
import TrunklineBytes
import TrunklinePlatform

/// The received packets, by number.
struct TraceRecording {
  let count: Int
  let packetMilliseconds: Int
  /// Nanoseconds from the sender's clock to ours; nil: not received. A duplicate counts once.
  private var delays: [Int64?]
  private(set) var received = 0
  var refused = 0

  init(count: Int, packetMilliseconds: Int) {
    (self.count, self.packetMilliseconds) = (count, packetMilliseconds)
    delays = [Int64?](repeating: nil, count: count)
  }

  static let none = TraceRecording(count: 0, packetMilliseconds: 20)

  var isComplete: Bool { received == count }

  /// False for a packet of another sender.
  mutating func add(_ packet: TracePacket, at now: Int64) -> Bool {
    guard packet.count == count, packet.packetMilliseconds == packetMilliseconds, delays.indices.contains(packet.number) else {
      return false
    }
    guard delays[packet.number] == nil else { return true }
    delays[packet.number] = now &- packet.sent
    received += 1
    return true
  }

  var fastestMilliseconds: Double? { delays.compactMap(\.self).min().map { Double($0) / 1e6 } }

  mutating func setFastest(milliseconds: Double) {
    guard let least = delays.compactMap(\.self).min() else { return }
    let shift = Int64(milliseconds * 1e6) &- least
    for index in delays.indices { delays[index] = delays[index].map { $0 &+ shift } }
  }

  /// Each packet as if it had been sent when it was due: the sender's lateness is no delay of the network.
  var csv: String {
    var text = "send_ms,arrival_ms\n"
    func milliseconds(_ nanoseconds: Int64) -> String {
      let microseconds = (nanoseconds + 500) / 1_000
      let rest = String(microseconds % 1_000)
      return "\(microseconds / 1_000)." + String(repeating: "0", count: 3 - rest.count) + rest
    }
    for (number, delay) in delays.enumerated() {
      let sent = Int64(number * packetMilliseconds) * 1_000_000
      text += milliseconds(sent) + "," + (delay.map { milliseconds(sent + $0) } ?? "lost") + "\n"
    }
    return text
  }
}

enum TraceReceiver {
  /// How long to wait after the newest packet.
  private static let silence = Duration.seconds(5)

  /// Records until all packets have arrived, or none arrives any longer. Blocks.
  static func record(at address: SocketAddress, patience: Duration) throws -> TraceRecording {
    let socket = try UDPSocket(bind: address, receiveBufferBytes: 1 << 20)
    var recording = TraceRecording.none
    var refused = 0
    var until = MonotonicClock.now() + patience
    let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 2_048, alignment: 8)
    defer { room.deallocate() }
    while !recording.isComplete || recording.count == 0 {
      let now = MonotonicClock.now()
      guard now < until else { break }
      var entry = pollfd(fd: socket.fd, events: Int16(POLLIN), revents: 0)
      _ = poll(&entry, 1, Int32(min(1_000, (until - now).nanoseconds / 1_000_000 + 1)))
      // An ICMP error of an earlier answer is ignored: nothing is sent here.
      while let datagram = (try? socket.receive(into: room)) ?? nil {
        let came = MonotonicClock.now()
        guard let packet = TracePacket(room.prefix(datagram.count)) else {
          refused += 1
          continue
        }
        if recording.count == 0 { recording = TraceRecording(count: packet.count, packetMilliseconds: packet.packetMilliseconds) }
        if recording.add(packet, at: came.nanoseconds) { until = came + silence } else { refused += 1 }
      }
    }
    recording.refused = refused
    return recording
  }
}
