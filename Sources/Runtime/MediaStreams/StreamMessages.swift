import CallModel
import Foundation
import TrunklineAudioCodecs
import TrunklineRTP

/// The wire format of Twilio's Media Streams: JSON text messages, audio in Base64; or, in the formats `pcm8` and `pcm16`,
/// audio in binary messages of 16-bit samples, little-endian, and JSON for the rest.
struct StreamMessages {
  let request: StreamRequest
  let streamID: String
  private var sequence = 0
  private var chunk = 0
  /// Length of the audio that was sent.
  private var milliseconds = 0

  init(_ request: StreamRequest) {
    self.request = request
    streamID = "MZ" + Self.hex(request.call)
  }

  private static func hex(_ call: CallID) -> String { call.description.filter { $0 != "-" } }

  // MARK: ours

  func connected() -> [UInt8] { Array(#"{"event":"connected","protocol":"Call","version":"1.0.0"}"#.utf8) }

  mutating func start() -> [UInt8] {
    let format = MediaFormat(
      encoding: request.target.format == .mulaw ? "audio/x-mulaw" : "audio/x-l16",
      sampleRate: request.target.format.band.sampleRateHz,
      channels: 1)
    return json(
      Message(
        event: "start", streamSid: streamID,
        start: Start(
          streamSid: streamID, accountSid: "trunkline", callSid: request.call.description, tracks: ["inbound"],
          customParameters: request.parameters, mediaFormat: format)))
  }

  /// 20 ms of the trunk's audio.
  mutating func media(_ samples: [Int16]) -> (isText: Bool, bytes: [UInt8]) {
    guard request.target.format == .mulaw else { return (false, Self.octets(samples)) }
    chunk += 1
    defer { milliseconds += 20 }
    var coded = [UInt8](repeating: 0, count: samples.count)
    var span = coded.mutableSpan
    _ = AudioEncoding.pcmu.encodeSamples(samples.span, into: &span)
    sequence += 1
    // written by hand, because it is sent fifty times a second
    let text =
      #"{"event":"media","sequenceNumber":""# + "\(sequence)" + #"","media":{"track":"inbound","chunk":""# + "\(chunk)"
      + #"","timestamp":""# + "\(milliseconds)" + #"","payload":""# + Data(coded).base64EncodedString() + #""},"streamSid":""#
      + streamID + #""}"#
    return (true, Array(text.utf8))
  }

  mutating func mark(_ name: String) -> [UInt8] {
    json(Message(event: "mark", streamSid: streamID, mark: Mark(name: name)))
  }

  mutating func digit(_ digit: Character) -> [UInt8] {
    json(Message(event: "dtmf", streamSid: streamID, dtmf: Digit(track: "inbound_track", digit: String(digit))))
  }

  mutating func stop() -> [UInt8] {
    json(Message(event: "stop", streamSid: streamID, stop: Stop(accountSid: "trunkline", callSid: request.call.description)))
  }

  private mutating func json(_ message: Message) -> [UInt8] {
    sequence += 1
    var message = message
    message.sequenceNumber = String(sequence)
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return (try? encoder.encode(message)).map { Array($0) } ?? []
  }

  static func octets(_ samples: [Int16]) -> [UInt8] {
    samples.flatMap { sample in
      let bits = UInt16(bitPattern: sample)
      return [UInt8(truncatingIfNeeded: bits), UInt8(truncatingIfNeeded: bits >> 8)]
    }
  }

  // MARK: the peer's

  enum Received: Equatable {
    case audio([Int16])
    case mark(String)
    case clear
    /// An unknown message, which is skipped.
    case other
    case fault(Fault)
  }
  /// Why a message is skipped; the raw value is the metric's label.
  enum Fault: String, CaseIterable { case json, base64, oddLength, wrongFormat, mark }

  /// One text message.
  func read(text: [UInt8]) -> Received {
    guard let message = try? JSONDecoder().decode(Peer.self, from: Data(text)) else { return .fault(.json) }
    switch message.event {
    case "media":
      guard request.target.format == .mulaw else { return .fault(.wrongFormat) }
      guard let payload = message.media?.payload, let coded = Data(base64Encoded: payload) else { return .fault(.base64) }
      var samples = [Int16](repeating: 0, count: coded.count)
      var span = samples.mutableSpan
      _ = AudioEncoding.pcmu.decodeSamples(Array(coded).span, into: &span)
      return .audio(samples)
    case "mark":
      guard let name = message.mark?.name, name.utf8.count <= Limits.markBytes else { return .fault(.mark) }
      return .mark(name)
    case "clear": return .clear
    default: return .other
    }
  }

  /// One binary message.
  func read(binary bytes: [UInt8]) -> Received {
    guard request.target.format != .mulaw else { return .fault(.wrongFormat) }
    guard bytes.count % 2 == 0 else { return .fault(.oddLength) }
    return .audio(
      stride(from: 0, to: bytes.count, by: 2).map { Int16(bitPattern: UInt16(bytes[$0]) | UInt16(bytes[$0 + 1]) << 8) })
  }

  private struct MediaFormat: Encodable { var encoding: String, sampleRate: Int, channels: Int }
  private struct Start: Encodable {
    var streamSid: String, accountSid: String, callSid: String
    var tracks: [String]
    var customParameters: [String: String]
    var mediaFormat: MediaFormat
  }
  private struct Mark: Codable { var name: String }
  private struct Digit: Encodable { var track: String, digit: String }
  private struct Stop: Encodable { var accountSid: String, callSid: String }
  private struct Message: Encodable {
    var event: String
    var sequenceNumber: String?
    var streamSid: String
    var start: Start?
    var mark: Mark?
    var dtmf: Digit?
    var stop: Stop?
  }
  private struct Peer: Decodable {
    struct Media: Decodable { var payload: String }
    var event: String
    var media: Media?
    var mark: Mark?
  }
}
