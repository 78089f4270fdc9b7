import BenchKit
import CBenchNet

/// Runs many calls from one thread: in each step of 1 ms a twentieth of them send; it receives between the steps.
struct CallGenerator {
  struct Figures {
    var sent = 0, received = 0
    /// Received of sent packets, of the call and direction that lost most.
    var worstShare = 1.0
    /// In µs: of relayed packets from sending to the peer's kernel; of others behind the fastest packet near it in the same
    /// stream.
    var transits: [Double] = []
    /// How late this thread began its steps, in µs.
    var ownLateness: [Double] = []
    var seconds = 0.0
    /// True if the generator was late itself: the figures then state little about the measured thread.
    var isVoid: Bool { quantile(ownLateness, 0.99) > 1_000 }
  }

  var calls: [CallPair]
  var material: CallMaterial

  /// - Parameters:
  ///   - settle: seconds that are not counted.
  ///   - atStart: called when counting begins, `atEnd` when it ends.
  func run(seconds: Double, settle: Double, atStart: () -> Void, atEnd: () -> Void) throws -> Figures {
    let poller = bn_poller()
    defer { bn_close(poller) }
    for (index, call) in calls.enumerated() {
      bn_watch(poller, call.trunk, UInt32(2 * index))
      bn_watch(poller, call.app, UInt32(2 * index + 1))
    }
    var figures = Figures()
    let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 2_048, alignment: 16)
    defer { room.deallocate() }
    var ready = [UInt32](repeating: 0, count: 128)
    let begin = bn_monotonic()
    let (countFrom, end) = (begin + Int64(settle * 1e9), begin + Int64((settle + seconds) * 1e9))
    var (step, due, counting) = (0, begin, false)
    while due < end {
      // It sleeps until the step: the kernel stamps arrivals, and a sender to a waiting thread would pay for its wake-up.
      bn_sleep(due)
      let now = bn_monotonic()
      receive(poller, &ready, counting, room)
      if !counting, due >= countFrom {
        counting = true
        for call in calls { (call.sentByTrunk, call.sentByApp) = (0, 0) }
        atStart()
      }
      if counting { figures.ownLateness.append(Double(now - due) / 1_000) }
      for index in stride(from: step % 20, to: calls.count, by: 20) { calls[index].speak(material, room) }
      step += 1
      due += 1_000_000
      if bn_monotonic() - due > 2_000_000_000 { throw BenchError(text: "the generator cannot keep up with \(calls.count) calls") }
    }
    atEnd()
    // Packets that are still on their way.
    let last = bn_monotonic() + 100_000_000
    while bn_monotonic() < last {
      bn_pause(1_000_000)
      receive(poller, &ready, true, room)
    }
    figures.seconds = seconds
    gather(&figures)
    return figures
  }

  /// Reads all packets that have arrived.
  private func receive(_ poller: Int32, _ ready: inout [UInt32], _ counting: Bool, _ room: UnsafeMutableRawBufferPointer) {
    while true {
      let count = Int(max(0, bn_wait(poller, &ready, 128, 0)))
      for index in ready.prefix(count) {
        calls[Int(index / 2)].receive(atApp: index % 2 == 1, material, counting: counting, room)
      }
      if count < 128 { return }
    }
  }

  private func gather(_ figures: inout Figures) {
    for call in calls {
      for (sent, received) in [(call.sentByTrunk, call.toApp), (call.sentByApp, call.toTrunk)] {
        figures.sent += sent
        figures.received += min(sent, received.count)
        figures.worstShare = min(figures.worstShare, Double(received.count) / Double(max(1, sent)))
        figures.transits += (material.stamps ? received.transits : Self.lateness(received.transits)).map { Double($0) / 1_000 }
      }
    }
    figures.transits.sort()
    figures.ownLateness.sort()
  }
}

extension CallGenerator {
  /// Number of packets in half a second.
  private static let neighbours = 25

  /// How far each packet of a stream is behind the fastest of its neighbours. If a stream's tick moves for good, to follow the
  /// arrivals, later packets are not late: of the half seconds before and after a packet, the one with the slower fastest packet
  /// counts.
  static func lateness(_ transits: [Int64]) -> [Int64] {
    transits.indices.map { index in
      let before = transits[max(0, index - neighbours)...index].min() ?? 0
      let after = transits[index...min(transits.count - 1, index + neighbours)].min() ?? 0
      return transits[index] - max(before, after)
    }
  }
}

/// The quantile of sorted values.
func quantile(_ sorted: [Double], _ share: Double) -> Double {
  guard !sorted.isEmpty else { return 0 }
  return sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))]
}
