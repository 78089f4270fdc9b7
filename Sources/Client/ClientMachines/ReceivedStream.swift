import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP
import TrunklineSDP

/// The gateway's RTP stream: what each packet is, the counts, and the keys that were pressed.
///
/// | state | input | → | returns |
/// |---|---|---|---|
/// | not agreed | `receive` | same | nil |
/// | not agreed | `agree` | agreed | – |
/// | agreed | `agree`, another encoding | measured again; the counts stay until the next packet | – |
/// | agreed | `agree`, the same encoding | same measurements; the payload types may change | – |
/// | agreed | `receive` | counted | audio, event or other, by the payload type |
/// | any | `pressed`: the end of a digit, once for each | the digit is appended | – |
struct ReceivedStream: Sendable {
  enum Kind: Sendable { case audio, event, other }
  private struct Format: Sendable {
    let encoding: AudioEncoding
    let audio: UInt8
    let events: (UInt8?, UInt8?)
  }

  private(set) var packets: UInt64 = 0
  private(set) var bytes: UInt64 = 0
  private(set) var lost: UInt64 = 0
  private(set) var jitterMilliseconds = 0.0
  private(set) var digits = ""
  private var format: Format?
  private var reception = ReceiverStatistics(clockRateHz: 48_000)
  private var digitReceiver = DigitReceiver(clockRateHz: 48_000)

  mutating func agree(_ media: AppMedia) {
    if format?.encoding != media.codec {
      reception = ReceiverStatistics(clockRateHz: media.codec.clockRateHz)
      digitReceiver = DigitReceiver(clockRateHz: media.codec.clockRateHz)
    }
    format = Format(
      encoding: media.codec, audio: media.payloadType, events: (media.telephoneEvent48, media.telephoneEvent8))
  }

  /// Counts an authentic packet. HOT
  mutating func receive(_ header: RTPHeader, payloadBytes: Int, at now: Instant) -> Kind? {
    guard let format else { return nil }
    _ = reception.receive(header, at: now)
    bytes += UInt64(payloadBytes)
    (packets, lost, jitterMilliseconds) = (reception.received, reception.lost, reception.jitterMilliseconds)
    if header.payloadType == format.audio { return .audio }
    return header.payloadType == format.events.0 || header.payloadType == format.events.1 ? .event : .other
  }

  mutating func pressed(_ payload: Span<UInt8>, _ timestamp: RTPTimestamp, at now: Instant) {
    guard let event = TelephoneEvent(parsing: payload),
      let digit = digitReceiver.receive(event, timestamp: timestamp, at: now)
    else { return }
    digits.append(Character(Unicode.Scalar(digit.digit)))
  }

  mutating func senderReportReceived(_ ntp: NTPTimestamp, from source: SSRC, at now: Instant) {
    reception.senderReportReceived(ntp, from: source, at: now)
  }
  /// The block of our report about this stream; nil before its first packet.
  mutating func block(at now: Instant) -> ReportBlock? { reception.report(at: now) }
}
