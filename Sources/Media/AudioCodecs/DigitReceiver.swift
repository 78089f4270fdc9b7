import Bytes
import RTP

/// A digit from a peer, told once.
public struct ReceivedDigit: Sendable, Equatable {
  /// `0-9 * # A-D` as ASCII.
  public var digit: UInt8
  public var durationMilliseconds: Int
  public init(digit: UInt8, durationMilliseconds: Int) {
    (self.digit, self.durationMilliseconds) = (digit, durationMilliseconds)
  }
}

/// Turns telephone-event packets into digits, each told once, whatever is lost, repeated or reordered (RFC 4733 §2.5.2): events
/// are told apart by timestamp, not by marker bit, which real peers forget.
///
/// | state | input | result |
/// |---|---|---|
/// | idle | event with a newer timestamp | remembered: playing |
/// | idle | event with the last digit's timestamp (repeated end) | ignored |
/// | idle | an end like the last one within 60 ms, whatever its timestamp | ignored |
/// | playing | same timestamp, no E | longer duration; far shorter: the counter of 16 bits went round |
/// | playing | same timestamp, E | digit: idle |
/// | playing | same code where this segment must end (§2.5.1.3) | the digit goes on |
/// | playing | same code, timestamp and duration have grown alike | a peer that moves the timestamp: the digit goes on |
/// | playing | other newer timestamp (all ends lost) | the old digit, the new one is remembered |
/// | playing | older timestamp | ignored |
/// | playing | no packet for 200 ms (all ends lost) | digit, by `expire`: idle |
public struct DigitReceiver: Sendable {
  private struct Playing: Sendable {
    var code: UInt8
    var timestamp: RTPTimestamp
    var duration: UInt16
    /// Length of the segments before, or of 16-bit rounds.
    var before: Int = 0
    var last: Instant
  }
  private struct Finished: Sendable {
    var code: UInt8
    var timestamp: RTPTimestamp
    var duration: UInt16
    var at: Instant
  }

  public let clockRateHz: UInt32
  private var playing: Playing?
  private var finished: Finished?
  private static let silence = Duration.milliseconds(200)
  private static let repetition = Duration.milliseconds(60)
  /// A segment ends at a duration of 65535 (§2.5.1.3), by some at 65536.
  private static let segment = 65_535
  private static let lostSegments = 8

  public init(clockRateHz: UInt32) { self.clockRateHz = max(1, clockRateHz) }

  /// Takes one event of a packet of the telephone-event payload type; codes that are no digit are ignored.
  public mutating func receive(_ event: TelephoneEvent, timestamp: RTPTimestamp, at now: Instant) -> ReceivedDigit? {
    guard TelephoneEvent.digit(of: event.event) != nil else { return nil }
    guard var current = playing else { return begin(event, timestamp, at: now) }
    if timestamp == current.timestamp {
      guard event.event == current.code else { return nil }
      if Int(event.duration) < Int(current.duration) - 0x8000 {
        (current.before, current.duration) = (current.before + 0x1_0000, 0)
      }
      return go(on: current, event, at: now)
    }
    guard timestamp.isNewer(than: current.timestamp) else { return nil }
    if event.event == current.code, let length = segmentLength(current, event, timestamp) {
      current.before += length
      (current.timestamp, current.duration) = (timestamp, 0)
      return go(on: current, event, at: now)
    }
    let digit = finish(current)
    // The new event may already be over: its end is then told by the repeated end packet or by `expire`.
    playing = Playing(code: event.event, timestamp: timestamp, duration: event.duration, last: now)
    return digit
  }

  private mutating func begin(_ event: TelephoneEvent, _ timestamp: RTPTimestamp, at now: Instant) -> ReceivedDigit? {
    if let finished {
      guard timestamp.isNewer(than: finished.timestamp) else { return nil }
      let looksRepeated = event.isEnd && event.event == finished.code && event.duration == finished.duration
      if looksRepeated, now - finished.at < Self.repetition { return nil }
    }
    let begun = Playing(code: event.event, timestamp: timestamp, duration: event.duration, last: now)
    guard event.isEnd else {
      playing = begun
      return nil
    }
    return finish(begun)
  }

  private mutating func go(on current: Playing, _ event: TelephoneEvent, at now: Instant) -> ReceivedDigit? {
    var current = current
    current.duration = max(current.duration, event.duration)
    current.last = now
    guard event.isEnd else {
      playing = current
      return nil
    }
    return finish(current)
  }

  /// The length of what came before, if `timestamp` goes on with the same press of the key; nil for a new one.
  private func segmentLength(_ current: Playing, _ event: TelephoneEvent, _ timestamp: RTPTimestamp) -> Int? {
    let step = timestamp.distance(from: current.timestamp)
    for count in 1...Self.lostSegments {
      if step == count * Self.segment || step == count * (Self.segment + 1) { return step }
    }
    if step == Int(current.duration) { return step }
    // A peer that stamps each packet with the time it is sent: the duration counts from the beginning all the same.
    if step == Int(event.duration) - Int(current.duration) { return 0 }
    return nil
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
    finished = Finished(code: event.code, timestamp: event.timestamp, duration: event.duration, at: event.last)
    guard let digit = TelephoneEvent.digit(of: event.code) else { return nil }
    let units = event.before + Int(event.duration)
    return ReceivedDigit(digit: digit, durationMilliseconds: units * 1000 / Int(clockRateHz))
  }
}
