import TrunklineBytes
public import TrunklineRTP

/// One payload type of a section with its `rtpmap` (or the static assignment of RFC 3551 §6) and `fmtp`.
public struct AudioFormat: Hashable, Sendable {
  public let payloadType: UInt8
  /// In lower case.
  public let encoding: String
  public let clockRateHz: UInt32
  public let channels: Int
  public let parameters: String?

  /// The codec, if the table has it; nil for any other.
  public var codec: AudioEncoding? { CodecTable.encoding(named: encoding, clockRateHz: clockRateHz, channels: channels) }
  public var isTelephoneEvent: Bool { encoding == "telephone-event" && channels == 1 }
  /// RFC 3389.
  public var isComfortNoise: Bool { encoding == "cn" && channels == 1 }

  /// A `name=value` parameter of the fmtp line; names are compared without case.
  public func parameter(_ name: String) -> String? {
    guard let parameters else { return nil }
    for part in parameters.split(separator: ";", maxSplits: Limits.formatParameters) {
      let pair = part.split(separator: "=", maxSplits: 1)
      guard pair.count == 2, trimmed(pair[0]).lowercased() == name else { continue }
      return String(trimmed(pair[1]))
    }
    return nil
  }
}

extension MediaDescription {
  /// The section's RTP formats in its order of preference. Invalid payload types, and those without a description, are omitted.
  public var audioFormats: [AudioFormat] {
    var maps: [UInt8: Substring] = [:]
    for value in attributes.values("rtpmap") {
      let parts = value.split(separator: " ", maxSplits: 1)
      guard parts.count == 2, let payloadType: UInt8 = number(parts[0]), maps[payloadType] == nil else { continue }
      maps[payloadType] = trimmed(parts[1])
    }
    var parameters: [UInt8: String] = [:]
    for value in attributes.values("fmtp") {
      let parts = value.split(separator: " ", maxSplits: 1)
      guard parts.count == 2, let payloadType: UInt8 = number(parts[0]), parameters[payloadType] == nil else { continue }
      parameters[payloadType] = String(trimmed(parts[1]))
    }
    var seen: Set<UInt8> = []
    return formats.compactMap { format in
      guard let payloadType: UInt8 = number(format), payloadType < 128, seen.insert(payloadType).inserted else { return nil }
      guard let map = maps[payloadType] ?? Self.staticTypes[payloadType] else { return nil }
      let parts = map.split(separator: "/", omittingEmptySubsequences: false)
      guard parts.count == 2 || parts.count == 3, let claimed: UInt32 = number(parts[1]), claimed > 0 else { return nil }
      let channels: Int? = parts.count == 3 ? number(parts[2]) : 1
      guard let channels else { return nil }
      let encoding = parts[0].lowercased()
      // A static type has its clock by RFC 3551 §6. Some peers state G722/16000, the sampling rate: the clock is 8000 (§4.5.2).
      let fixed = CodecTable.rows.first { $0.isStatic && $0.payloadType == payloadType && $0.name.lowercased() == encoding }
      let clock = fixed?.clockRateHz ?? claimed
      return AudioFormat(
        payloadType: payloadType, encoding: encoding, clockRateHz: clock, channels: channels,
        parameters: parameters[payloadType])
    }
  }

  /// RFC 3551 §6, as far as telephone systems omit the rtpmap: our codecs, and others that they name.
  private static let staticTypes: [UInt8: Substring] = {
    var types: [UInt8: Substring] = [3: "GSM/8000", 4: "G723/8000", 13: "CN/8000", 15: "G728/8000", 18: "G729/8000"]
    for row in CodecTable.rows { if row.isStatic { types[row.payloadType] = row.rtpmap[...] } }
    return types
  }()

  /// The packet time the author wants to receive: `ptime` within `maxptime`, rounded down to 10 ms; 20 if absent or unusable.
  public var packetTimeMilliseconds: Int {
    func milliseconds(_ name: String) -> Int? {
      // some peers write "20.0"; the part after the point does not matter
      attributes.value(name).flatMap { trimmed($0[...]).split(separator: ".").first.flatMap { number($0, as: Int.self) } }
    }
    var value = milliseconds("ptime") ?? 20
    if let most = milliseconds("maxptime"), most >= Limits.packetTimes.lowerBound { value = min(value, most) }
    value -= value % 10
    return Limits.packetTimes.contains(value) ? value : 20
  }
}

extension MediaDescription {
  /// `a=rtcp:port [IN IP4|IP6 address]` (RFC 3605 §2.1), with the address `ip` if it names none; nil if absent or invalid.
  func controlAddress(beside ip: IPAddress) -> SocketAddress? {
    guard let parts = attributes.value("rtcp")?.split(separator: " "), let first = parts.first, let port: UInt16 = number(first),
      port > 0
    else { return nil }
    guard parts.count > 1 else { return SocketAddress(ip, port) }
    guard parts.count == 4, let own = IPAddress(String(parts[3]))?.unmapped, own.family == ip.family, !own.isMulticast,
      !own.isUnspecified
    else { return nil }
    return SocketAddress(own, port)
  }
  var wantsVoIPMetrics: Bool { attributes.asksForVoIPMetrics }
}

extension SessionDescription {
  var wantsVoIPMetrics: Bool { attributes.asksForVoIPMetrics }
}

extension [Attribute] {
  /// `a=rtcp-xr:… voip-metrics …` (RFC 3611 §5.1).
  fileprivate var asksForVoIPMetrics: Bool {
    values("rtcp-xr").contains { $0.split(separator: " ").contains { $0.lowercased() == "voip-metrics" } }
  }
}

/// Removes spaces and tabs at both ends.
func trimmed(_ text: Substring) -> Substring {
  var text = text
  while let first = text.utf8.first, first == 32 || first == 9 { text = text.dropFirst() }
  while let last = text.utf8.last, last == 32 || last == 9 { text = text.dropLast() }
  return text
}
