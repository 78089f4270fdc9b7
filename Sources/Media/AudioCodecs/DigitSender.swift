import TrunklineRTP

/// The packet that a leg sends in one tick, instead of audio, while a digit plays.
public struct DigitPacket: Sendable, Equatable {
  public var event: TelephoneEvent
  /// Set on the first packet of each event only (RFC 4733 §2.5.1.1).
  public var marker: Bool
  /// RTP clock units from the tick's own timestamp back to the event's start: the packet's timestamp is `tick − timestampLag`, so
  /// all packets of one event carry the same one. Beyond 65535 units an event continues in a new segment (§2.5.1.3), which may
  /// begin within this tick: then the lag is negative.
  public var timestampLag: Int
  /// Ticks since the event began, for a caller that plays it as a tone.
  public var toneOffset: Int
}

/// Plays digits as telephone-event (RFC 4733 §2.5), a packet per 20 ms tick:
///
/// | state | tick | sends | next |
/// |---|---|---|---|
/// | idle | queue empty | nothing (audio continues) | idle |
/// | idle | digit queued | first packet, marker, 20 ms | playing |
/// | playing | before its length | update, duration + 20 ms | playing |
/// | playing | length reached | E bit, 1st of 3, same duration | ending |
/// | ending | 2nd, 3rd | the same packet again | gap |
/// | gap | within the gap | nothing (silence) | gap, then idle |
///
/// A value type with a fixed ring: no allocation per digit. Digits beyond `Limits.queuedDigits` are refused.
public struct DigitSender: Sendable {
  private enum Phase: Sendable, Equatable { case idle, playing, ending(sent: Int), gap(ticksLeft: Int) }
  private struct Digit: Sendable {
    var code: UInt8 = 0
    var ticks: UInt8 = 0
    var gapTicks: UInt8 = 0
  }

  public let clockRateHz: UInt32
  /// −dBm0 written into every packet.
  public var volume: UInt8 = 10
  /// Digits fully sent so far, E bits included.
  public private(set) var sent: UInt64 = 0
  private var queue: [Digit]
  private var head = 0
  private var count = 0
  private var phase = Phase.idle
  private var current = Digit()
  private var elapsedTicks = 0
  private static let segment = 65_535

  /// - Parameter clockRateHz: clock of the telephone-event payload type in use: 8000 or 48000.
  public init(clockRateHz: UInt32 = 8000) {
    self.clockRateHz = max(1, clockRateHz)
    queue = [Digit](repeating: Digit(), count: Limits.queuedDigits)
  }

  /// Queues one digit (`0-9 * # A-D` as ASCII). False, and nothing is queued, for another character or a full queue. Both times
  /// are limited to 40…5100 ms and rounded up to ticks.
  public mutating func enqueue(_ digit: UInt8, durationMilliseconds: Int = 160, gapMilliseconds: Int = 80) -> Bool {
    guard let code = TelephoneEvent.code(of: digit), count < queue.count else { return false }
    func ticks(_ milliseconds: Int) -> UInt8 { UInt8(clamping: (max(40, min(5100, milliseconds)) + 19) / 20) }
    queue[(head + count) % queue.count] = Digit(
      code: code, ticks: ticks(durationMilliseconds), gapTicks: ticks(gapMilliseconds))
    count += 1
    return true
  }

  public var isIdle: Bool { phase == .idle && count == 0 }
  /// Digits not yet begun.
  public var waiting: Int { count }

  /// The next 20 ms. Nil: send audio, or nothing while a digit's gap runs.
  // HOT
  public mutating func tick() -> DigitPacket? {
    switch phase {
    case .idle:
      return begin()
    case .playing:
      elapsedTicks += 1
      if elapsedTicks >= Int(current.ticks) {
        phase = .ending(sent: 1)
        return packet(isEnd: true, marker: false)
      }
      return packet(isEnd: false, marker: false)
    case .ending(let already):
      if already < Limits.endPackets {
        phase = .ending(sent: already + 1)
        elapsedTicks += 1
        return packet(isEnd: true, marker: false)
      }
      sent &+= 1
      // The three ends were sent in ticks of the gap.
      let left = Int(current.gapTicks) - Limits.endPackets
      phase = left > 1 ? .gap(ticksLeft: left - 1) : .idle
      return left > 0 ? nil : begin()
    case .gap(let left):
      phase = left > 1 ? .gap(ticksLeft: left - 1) : .idle
      return nil
    }
  }

  private mutating func begin() -> DigitPacket? {
    guard count > 0 else {
      phase = .idle
      return nil
    }
    current = queue[head]
    head = (head + 1) % queue.count
    count -= 1
    elapsedTicks = 0
    phase = .playing
    return packet(isEnd: false, marker: true)
  }

  private func packet(isEnd: Bool, marker: Bool) -> DigitPacket {
    let tickUnits = Int(clockRateHz / 50)
    // A packet covers the event up to the end of its tick (§2.5.1.2); the end repeats the final duration.
    let ticks = isEnd ? Int(current.ticks) : elapsedTicks + 1
    let before = (ticks * tickUnits - 1) / Self.segment * Self.segment
    let event = TelephoneEvent(
      event: current.code, isEnd: isEnd, volume: volume, duration: UInt16(clamping: ticks * tickUnits - before))
    return DigitPacket(
      event: event, marker: marker, timestampLag: elapsedTicks * tickUnits - before,
      toneOffset: elapsedTicks)
  }
}
