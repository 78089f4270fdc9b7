import TrunklineBytes
import TrunklineRTP

/// The formats of one trunk leg and our payload types for them: those that our offers list, and those that may be received.
///
/// A payload type in a description is the one that its author wants to receive (RFC 3264 §5.1, §6.1). So received packets have
/// the payload types of our last offer, or of the peer's, which our answer repeats; many peers send those of their own answer
/// instead, and both are accepted. A payload type keeps its meaning for the life of the leg (§8.3.2).
struct TrunkFormats: Sendable {
  /// In our order of preference.
  let codecs: [AudioEncoding]
  /// The formats of the offer that has no answer yet.
  private(set) var offered: [NumberedFormat]?
  /// Our payload types in all descriptions so far.
  private var numbers: [NumberedFormat] = []
  private static let firstEvent: UInt8 = 101
  private static let eventClock: UInt32 = 8_000

  init(codecs: [AudioEncoding]) { self.codecs = codecs }

  /// Codecs, noise and events, in the order of the m-line.
  struct Listed {
    var audio: [NumberedFormat] = []
    var noise: UInt8?
    var events: [NumberedFormat] = []
    var all: [NumberedFormat] { audio + [noise].compactMap { $0 }.map { NumberedFormat($0, .comfortNoise) } + events }
  }

  /// The formats of our offer: the agreed codec before the others, noise only if the peer has shown that it supports it, and
  /// telephone-event on the clock of each codec (RFC 4733 §2.1), and on 8000 Hz in any case, the only one that many peers have
  /// beside Opus.
  mutating func offer(first agreed: AudioEncoding?, noise: UInt8?) -> Listed {
    var used = Set(numbers.map(\.payloadType))
    var listed = Listed()
    let order = codecs.filter { $0 == agreed } + codecs.filter { $0 != agreed }
    for codec in order {
      let format = PayloadFormat.audio(codec)
      if let number = number(of: format) ?? free(codec.row, &used) { listed.audio.append(NumberedFormat(number, format)) }
    }
    listed.noise = noise.map { number(of: .comfortNoise) ?? $0 }
    if let noise = listed.noise { used.insert(noise) }
    let clocks = listed.audio.map { format -> UInt32 in if case .audio(let codec) = format.format { codec.clockRateHz } else { 0 }
    }
    let others = Set(clocks + [Self.eventClock]).subtracting(clocks.prefix(1)).sorted()
    for clock in clocks.prefix(1) + others {
      let format = PayloadFormat.telephoneEvent(clockRateHz: clock)
      guard let number = number(of: format) ?? (Self.firstEvent...127).first(where: { !used.contains($0) }) else { continue }
      used.insert(number)
      listed.events.append(NumberedFormat(number, format))
    }
    offered = listed.all
    return listed
  }

  private func number(of format: PayloadFormat) -> UInt8? { numbers.first { $0.format == format }?.payloadType }

  /// The codec's usual payload type; for a dynamic one another if that is in use; nil if none is free.
  private func free(_ row: CodecRow, _ used: inout Set<UInt8>) -> UInt8? {
    let dynamic = row.isStatic ? [] : Array(UInt8(96)...127)
    guard let number = ([row.payloadType] + dynamic).first(where: { !used.contains($0) }) else { return nil }
    used.insert(number)
    return number
  }

  /// Ends the exchange: our offer was answered with these. Returns the formats that may be received: all that we offered, under
  /// our payload types, because the peer may have begun before its answer, and those of its answer under types that are not ours.
  mutating func answered(with answer: [AudioFormat]) -> [NumberedFormat] {
    let ours = offered ?? []
    offered = nil
    keep(ours)
    return Self.merged(ours, with: usable(answer))
  }

  /// Ends the exchange: the peer's offer was answered with its own payload types.
  mutating func answering(_ offer: [AudioFormat]) -> [NumberedFormat] {
    offered = nil
    let theirs = usable(offer)
    keep(theirs)
    return theirs
  }

  private mutating func keep(_ formats: [NumberedFormat]) {
    numbers = Self.merged(formats, with: numbers.filter { old in !formats.contains { $0.format == old.format } })
  }

  private static func merged(_ first: [NumberedFormat], with second: [NumberedFormat]) -> [NumberedFormat] {
    first + second.filter { other in !first.contains { $0.payloadType == other.payloadType } }
  }

  /// The formats of a description that we can receive.
  private func usable(_ formats: [AudioFormat]) -> [NumberedFormat] {
    formats.compactMap { format in
      if let codec = format.codec { return codecs.contains(codec) ? NumberedFormat(format.payloadType, .audio(codec)) : nil }
      if format.isTelephoneEvent {
        return NumberedFormat(format.payloadType, .telephoneEvent(clockRateHz: format.clockRateHz))
      }
      return format.isComfortNoise && format.clockRateHz == 8_000 ? NumberedFormat(format.payloadType, .comfortNoise) : nil
    }
  }
}

extension [AudioFormat] {
  /// The telephone-event for a codec: on its clock (RFC 4733 §2.1), else at 8000 Hz, else any.
  func event(beside codec: AudioEncoding) -> AudioFormat? {
    let events = filter(\.isTelephoneEvent)
    return events.first { $0.clockRateHz == codec.clockRateHz } ?? events.first { $0.clockRateHz == 8_000 } ?? events.first
  }
}
