import TrunklineBytes
import TrunklineRTP

/// A digit from a peer, reported once.
public struct ReceivedDigit: Sendable, Equatable {
  /// `0-9 * # A-D` as ASCII.
  public var digit: UInt8
  public var durationMilliseconds: Int
  public init(digit: UInt8, durationMilliseconds: Int) {
    (self.digit, self.durationMilliseconds) = (digit, durationMilliseconds)
  }
}

/// Turns telephone-event packets into digits and reports each once, whatever is lost, repeated or reordered (RFC 4733 §2.5.2).
/// Events are distinguished by timestamp, not by marker bit, which some peers do not set.
///
/// | state | input | result |
/// |---|---|---|
/// | idle | event with a newer timestamp | remembered: playing |
/// | idle | event with the last digit's timestamp (repeated end), or for half a second with an older one | ignored |
/// | idle | an end of the same key within 100 ms of the last end, whatever its timestamp | ignored |
/// | playing | same timestamp, no E | longer duration; far shorter: the 16-bit counter wrapped |
/// | playing | same timestamp, E | digit: idle |
/// | playing | same code at a segment's full length (§2.5.1.3) | the digit continues |
/// | playing | same code, timestamp and duration have grown alike | a peer that moves the timestamp: the digit continues |
/// | playing | an end of the same code within 100 ms, no shorter | a peer that moves the timestamp of ends: the digit |
/// | playing | other newer timestamp (all ends lost) | the old digit, the new one is remembered |
/// | playing | older timestamp | ignored |
/// | playing | no packet for 200 ms (all ends lost) | digit, by `expire`: idle |
public struct DigitReceiver: Sendable {
  private struct Playing: Sendable {
    var code: UInt8
    var timestamp: RTPTimestamp
    var duration: UInt16
    /// Length of the earlier segments, or of the earlier 16-bit rounds.
    var before: Int = 0
    var last: Instant
  }
  private struct Finished: Sendable {
    var code: UInt8
    var timestamp: RTPTimestamp
    var at: Instant
  }

  public let clockRateHz: UInt32
  /// Timestamp units in an event unit: 6 with telephone-event/8000 beside Opus.
  private let stampsPerUnit: Int
  private var playing: Playing?
  private var finished: Finished?
  private static let silence = Duration.milliseconds(200)
  private static let repetition = Duration.milliseconds(100)
  /// No packet of an earlier digit arrives this late: an older timestamp then belongs to another timeline of the source.
  private static let disorder = Duration.milliseconds(500)
  /// A segment ends at a duration of 65535 (§2.5.1.3), by some at 65536.
  private static let segment = 65_535
  private static let lostSegments = 8

  /// - Parameters:
  ///   - clockRateHz: clock of the events' durations.
  ///   - stampRateHz: clock of the stream's timestamps, if it differs.
  public init(clockRateHz: UInt32, stampRateHz: UInt32? = nil) {
    self.clockRateHz = max(1, clockRateHz)
    stampsPerUnit = max(1, Int((stampRateHz ?? clockRateHz) / self.clockRateHz))
  }

  /// Handles one event of a packet of the telephone-event payload type; codes that are not digits are ignored.
  public mutating func receive(_ event: TelephoneEvent, timestamp: RTPTimestamp, at now: Instant) -> ReceivedDigit? {
    guard TelephoneEvent.digit(of: event.event) != nil else { return nil }
    guard var current = playing else { return begin(event, timestamp, at: now) }
    if timestamp == current.timestamp {
      guard event.event == current.code else { return nil }
      if Int(event.duration) < Int(current.duration) - 0x8000 {
        current.before = current.before + 0x1_0000
        current.duration = 0
      }
      return go(on: current, event, at: now)
    }
    guard timestamp.isNewer(than: current.timestamp) else { return nil }
    if event.event == current.code, let length = segmentLength(current, event, timestamp) {
      current.before += length
      current.timestamp = timestamp
      current.duration = 0
      return go(on: current, event, at: now)
    }
    if event.event == current.code, event.isEnd, event.duration >= current.duration, now - current.last < Self.repetition {
      current.timestamp = timestamp
      return go(on: current, event, at: now)
    }
    let digit = finish(current)
    // The new event may already have ended: the repeated end packet or `expire` then ends it.
    playing = Playing(code: event.event, timestamp: timestamp, duration: event.duration, last: now)
    return digit
  }

  private mutating func begin(_ event: TelephoneEvent, _ timestamp: RTPTimestamp, at now: Instant) -> ReceivedDigit? {
    if let finished {
      if timestamp == finished.timestamp, event.event == finished.code { return nil }
      guard timestamp.isNewer(than: finished.timestamp) || now - finished.at >= Self.disorder else { return nil }
      if event.isEnd, event.event == finished.code, now - finished.at < Self.repetition {
        self.finished?.at = now
        return nil
      }
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

  /// The length of the earlier segments, if `timestamp` continues the same press of the key; nil for a new press.
  private func segmentLength(_ current: Playing, _ event: TelephoneEvent, _ timestamp: RTPTimestamp) -> Int? {
    let distance = timestamp.distance(from: current.timestamp)
    if let length = segmentLength(current, event, step: distance) { return length }
    guard stampsPerUnit > 1, distance % stampsPerUnit == 0 else { return nil }
    return segmentLength(current, event, step: distance / stampsPerUnit)
  }

  private func segmentLength(_ current: Playing, _ event: TelephoneEvent, step: Int) -> Int? {
    for count in 1...Self.lostSegments {
      if step == count * Self.segment || step == count * (Self.segment + 1) { return step }
    }
    if step == Int(current.duration) { return step }
    // A peer that stamps each packet with its send time: the duration still counts from the beginning.
    if step == Int(event.duration) - Int(current.duration) { return 0 }
    return nil
  }

  /// A digit is in progress; `expire` may end it.
  public var isOpen: Bool { playing != nil }

  /// Call on ticks: ends a digit whose last packets were all lost.
  public mutating func expire(at now: Instant) -> ReceivedDigit? {
    guard let current = playing, now - current.last >= Self.silence else { return nil }
    return finish(current)
  }

  private mutating func finish(_ event: Playing) -> ReceivedDigit? {
    playing = nil
    finished = Finished(code: event.code, timestamp: event.timestamp, at: event.last)
    guard let digit = TelephoneEvent.digit(of: event.code) else { return nil }
    let units = event.before + Int(event.duration)
    return ReceivedDigit(digit: digit, durationMilliseconds: units * 1000 / Int(clockRateHz))
  }
}
