import Bytes
import RTP

/// A digit from a peer, told once.
public struct ReceivedDigit: Sendable, Equatable {
  /// `0-9 * # A-D` as ASCII.
  public var digit: UInt8
  public var durationMilliseconds: Int
}

/// Turns telephone-event packets into digits, each told once, whatever is lost, repeated or reordered (RFC 4733 §2.5.2): events
/// are told apart by timestamp, not by marker bit, which real peers forget.
///
/// | state | input | result |
/// |---|---|---|
/// | idle | event with a newer timestamp | remembered: playing |
/// | idle | event with the last digit's timestamp (repeated end) | ignored |
/// | playing | same timestamp, no E | longer duration |
/// | playing | same timestamp, E | digit: idle |
/// | playing | newer timestamp (all ends lost) | the old digit, the new one is remembered |
/// | playing | older timestamp | ignored |
/// | playing | no packet for 200 ms (all ends lost) | digit, by `expire`: idle |
public struct DigitReceiver: Sendable {
  private struct Playing: Sendable {
    var code: UInt8
    var timestamp: RTPTimestamp
    var duration: UInt16
    var last: Instant
  }

  public let clockRateHz: UInt32
  private var playing: Playing?
  private var finished: RTPTimestamp?
  private static let silence = Duration.milliseconds(200)

  public init(clockRateHz: UInt32) { self.clockRateHz = max(1, clockRateHz) }

  /// Takes one packet of the telephone-event payload type; codes that are no digit are ignored.
  public mutating func receive(_ event: TelephoneEvent, timestamp: RTPTimestamp, at now: Instant) -> ReceivedDigit? {
    guard TelephoneEvent.digit(of: event.event) != nil else { return nil }
    if var current = playing {
      if timestamp == current.timestamp {
        guard event.event == current.code else { return nil }
        current.duration = max(current.duration, event.duration)
        current.last = now
        guard event.isEnd else {
          playing = current
          return nil
        }
        return finish(current)
      }
      guard timestamp.isNewer(than: current.timestamp) else { return nil }
      let digit = finish(current)
      // The new event may already be over: its end is then told by the repeated end packet or by `expire`.
      playing = Playing(code: event.event, timestamp: timestamp, duration: event.duration, last: now)
      return digit
    }
    if let finished, !timestamp.isNewer(than: finished) { return nil }
    let begun = Playing(code: event.event, timestamp: timestamp, duration: event.duration, last: now)
    guard event.isEnd else {
      playing = begun
      return nil
    }
    return finish(begun)
  }

  /// Call on ticks: ends a digit whose last packets were all lost.
  public mutating func expire(at now: Instant) -> ReceivedDigit? {
    guard let current = playing, now - current.last >= Self.silence else { return nil }
    return finish(current)
  }

  /// The source changed: its timestamps are not comparable with the old ones.
  public mutating func sourceChanged() -> ReceivedDigit? {
    let digit = playing.flatMap { finish($0) }
    finished = nil
    return digit
  }

  private mutating func finish(_ event: Playing) -> ReceivedDigit? {
    playing = nil
    finished = event.timestamp
    guard let digit = TelephoneEvent.digit(of: event.code) else { return nil }
    return ReceivedDigit(digit: digit, durationMilliseconds: Int(event.duration) * 1000 / Int(clockRateHz))
  }
}
