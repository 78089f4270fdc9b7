/// The encoding of an audio stream on one leg. Each case has its row in `CodecTable`; SDP, codecs, media, settings and client
/// know only that row of a codec.
public enum AudioEncoding: UInt8, Sendable, CaseIterable {
  case opus, pcmu, pcma, g722, l16
}

/// The one table of codecs. A codec is a case above, a row here, and its coding in AudioCodecs
/// (docs/design/codecs-and-concealment.md).
public enum CodecTable {
  /// One row per case, in the order of the cases.
  public static let rows = checked([
    // The clock is always 48000 and the channels always 2, whatever is sent (RFC 7587 §4.1, §7).
    CodecRow(
      .opus, name: "opus", payloadType: 111, clockRateHz: 48_000, channels: 2, octetsPerUnit: 0,
      formatParameters: ["minptime=10", "useinbandfec=1", "stereo=0"], frameMilliseconds: [10, 20, 40, 60], carriesRepair: true,
      algorithmicDelayMilliseconds: 6.5, impairment: .opus, apps: .offered),
    CodecRow(.pcmu, name: "PCMU", payloadType: 0, silence: 0xff, isStateless: true, apps: .offered),
    CodecRow(.pcma, name: "PCMA", payloadType: 8, silence: 0xd5, isStateless: true, apps: .offered),
    // The clock is 8000 because of a mistake in RFC 1890 (RFC 3551 §4.5.2).
    CodecRow(.g722, name: "G722", payloadType: 9, samplingRateHz: 16_000, apps: .ofTrunk),
    // RFC 3551 §4.5.11; its static types 10 and 11 are for 44.1 kHz.
    CodecRow(.l16, name: "L16", payloadType: 97, octetsPerUnit: 2, silence: 0, isStateless: true, apps: .never),
  ])

  /// The codec of an `a=rtpmap`, whose name is compared without case (RFC 8866 §6.6); nil for one without a row.
  public static func encoding(named name: String, clockRateHz: UInt32, channels: Int) -> AudioEncoding? {
    let name = name.lowercased()
    return rows.first { $0.name.lowercased() == name && $0.clockRateHz == clockRateHz && $0.channels == channels }?.encoding
  }

  /// Checks the rows; throws the rule that they break.
  static func check(_ rows: [CodecRow]) throws(CodecTableError) {
    guard rows.map(\.encoding) == AudioEncoding.allCases else { throw .order }
    var used: Set<UInt8> = []
    for row in rows {
      guard Limits.staticPayloadTypes.contains(row.payloadType) || Limits.dynamicPayloadTypes.contains(row.payloadType) else {
        throw .payloadType(row.name, row.payloadType)
      }
      guard used.insert(row.payloadType).inserted else { throw .payloadType(row.name, row.payloadType) }
      guard !row.packetTimes.isEmpty else { throw .framesDoNotFit(row.name) }
    }
  }

  private static func checked(_ rows: [CodecRow]) -> [CodecRow] {
    do throws(CodecTableError) { try check(rows) } catch { preconditionFailure("CodecTable: \(error)") }
    return rows
  }
}

/// A mistake in the rows of `CodecTable`: found by its test, and at its first use.
public enum CodecTableError: Error, Equatable, CustomStringConvertible {
  case order
  case payloadType(String, UInt8)
  case framesDoNotFit(String)

  public var description: String {
    switch self {
    case .order: "give every case of AudioEncoding one row, in the order of the cases"
    case .payloadType(let name, let number):
      "\(name): payload type \(number) is in use or out of range: use a free one of 0…34 (RFC 3551 §6) or 96…127"
    case .framesDoNotFit(let name): "\(name): not even its shortest frame fits into \(Limits.payloadLength) octets"
    }
  }
}

/// The properties of one codec.
public struct CodecRow: Sendable, Equatable {
  /// Whether apps may be offered it.
  public enum Apps: Sendable { case offered, ofTrunk, never }

  public let encoding: AudioEncoding
  /// RTP payload format name, as `a=rtpmap` and the settings write it.
  public let name: String
  /// The static one (RFC 3551 §6), or the dynamic one that we offer.
  public let payloadType: UInt8
  public let clockRateHz: UInt32
  /// The rate at which it samples the sound, if it is not the clock's.
  public let samplingRateHz: UInt32
  /// As `a=rtpmap` writes it.
  public let channels: Int
  /// Octets of one unit of the clock; 0 if the payload's content determines its duration, not its length.
  public let octetsPerUnit: Int
  /// Our parameters in `a=fmtp`.
  public let formatParameters: [String]
  /// Packet times that the codec has frames for, ascending.
  public let frameMilliseconds: [Int]
  /// The octet that digital silence consists of, if there is one.
  public let silence: UInt8?
  /// Each sample is coded by itself: a piece of a payload can be decoded without the piece before.
  public let isStateless: Bool
  /// Audio lost in one packet can be decoded from the next (Opus in-band FEC).
  public let carriesRepair: Bool
  /// Delay of encoder and decoder, beyond the frame.
  public let algorithmicDelayMilliseconds: Double
  public let impairment: CodecImpairment
  public let apps: Apps

  init(
    _ encoding: AudioEncoding, name: String, payloadType: UInt8, clockRateHz: UInt32 = 8_000, samplingRateHz: UInt32? = nil,
    channels: Int = 1, octetsPerUnit: Int = 1, formatParameters: [String] = [],
    frameMilliseconds: [Int] = [10, 20, 30, 40, 50, 60], silence: UInt8? = nil, isStateless: Bool = false,
    carriesRepair: Bool = false, algorithmicDelayMilliseconds: Double = 0, impairment: CodecImpairment = .g711, apps: Apps
  ) {
    (self.encoding, self.name, self.payloadType) = (encoding, name, payloadType)
    (self.clockRateHz, self.samplingRateHz, self.channels) = (clockRateHz, samplingRateHz ?? clockRateHz, channels)
    (self.octetsPerUnit, self.formatParameters, self.frameMilliseconds) = (octetsPerUnit, formatParameters, frameMilliseconds)
    (self.silence, self.isStateless, self.carriesRepair) = (silence, isStateless, carriesRepair)
    (self.algorithmicDelayMilliseconds, self.impairment, self.apps) = (algorithmicDelayMilliseconds, impairment, apps)
  }

  public var isStatic: Bool { Limits.staticPayloadTypes.contains(payloadType) }

  /// As in `a=rtpmap`, after the payload type.
  public var rtpmap: String { "\(name)/\(clockRateHz)" + (channels == 1 ? "" : "/\(channels)") }

  /// Octets of a payload of this duration; 0 if its content determines it.
  public func octets(ofMilliseconds milliseconds: Int) -> Int { Int(clockRateHz) / 1000 * milliseconds * octetsPerUnit }

  /// The frame lengths whose payload fits into a datagram.
  public var packetTimes: [Int] { frameMilliseconds.filter { octets(ofMilliseconds: $0) <= Limits.payloadLength } }

  /// The longest packet time up to the limit, else the shortest one.
  public func packetTime(atMost milliseconds: Int) -> Int {
    let times = packetTimes
    return times.last { $0 <= milliseconds } ?? times.first ?? 20
  }
}

extension AudioEncoding {
  public var row: CodecRow { CodecTable.rows[Int(rawValue)] }
  /// The encoding name of the RTP payload format registry.
  public var name: String { row.name }
  /// The clock of the RTP timestamp.
  public var clockRateHz: UInt32 { row.clockRateHz }

  /// By the name used in the settings; nil for one without a row.
  public init?(named name: String) {
    guard let row = CodecTable.rows.first(where: { $0.name.lowercased() == name.lowercased() }) else { return nil }
    self = row.encoding
  }

  /// Codecs offered to apps, in our order of preference.
  public static var ofApps: [AudioEncoding] { CodecTable.rows.filter { $0.apps == .offered }.map(\.encoding) }
}

/// The duration of a codec's payloads by their octets: the part of the row that the packet path needs, read at set-up.
public struct PayloadLength: Sendable {
  private let octetsPerUnit: Int32
  private let unitsPerFrame: UInt32
  private let millisecondsPerOctet: Double

  public init(_ encoding: AudioEncoding) {
    let row = encoding.row
    octetsPerUnit = Int32(row.octetsPerUnit)
    unitsPerFrame = row.clockRateHz / 50
    millisecondsPerOctet = row.octetsPerUnit == 0 ? 0 : 1000 / Double(row.octetsPerUnit) / Double(row.clockRateHz)
  }

  /// RTP clock units; those of 20 ms if the payload would have to be parsed. HOT
  @inline(__always) public func units(ofOctets count: Int) -> UInt32 {
    if octetsPerUnit == 1 { return UInt32(truncatingIfNeeded: count) }
    return octetsPerUnit == 0 ? unitsPerFrame : UInt32(truncatingIfNeeded: count) / UInt32(bitPattern: octetsPerUnit)
  }

  /// The same in milliseconds. HOT
  @inline(__always) public func milliseconds(ofOctets count: Int) -> Double {
    octetsPerUnit == 0 ? 20 : Double(count) * millisecondsPerOctet
  }
}
