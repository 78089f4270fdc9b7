import TrunklineBytes

/// A captured message in Homer's format: the Homer Encapsulation Protocol, version 3 ("EEP/HEP, The Extensible Encapsulation
/// protocol", revision 36): `HEP3`, the total length, and chunks of vendor, type, length and value.
enum HEP3 {
  private enum Chunk: UInt16 {
    case family = 1, transport, sourceV4, destinationV4, sourceV6, destinationV6, sourcePort, destinationPort, seconds,
      microseconds
    case protocolType, captureID
    case key = 14, payload
    case correlation = 17
  }
  /// Bytes of payload and key that a UDP datagram can hold beside the headers.
  static let mostBytes = 65_000

  /// Nil for a message that exceeds a datagram. `payload`: the message with its secrets masked.
  static func packet(_ message: TracedMessage, payload: [UInt8], captureID: UInt32, key: [UInt8]) -> [UInt8]? {
    guard payload.count + key.count < mostBytes else { return nil }
    let (source, destination) = (message.source.ip.unmapped, message.destination.ip.unmapped)
    let isV4 = source.family == .v4 && destination.family == .v4
    var out = Array("HEP3".utf8) + [0, 0]
    func add(_ type: Chunk, _ value: [UInt8]) {
      out += big16(0) + big16(type.rawValue) + big16(UInt16(clamping: value.count + 6)) + value
    }
    add(.family, [isV4 ? 2 : 10])
    add(.transport, [message.flow.transport == .udp ? 17 : 6])
    add(isV4 ? .sourceV4 : .sourceV6, source.bytes)
    add(isV4 ? .destinationV4 : .destinationV6, destination.bytes)
    add(.sourcePort, big16(message.source.port))
    add(.destinationPort, big16(message.destination.port))
    add(.seconds, big32(UInt32(truncatingIfNeeded: message.at / 1_000_000)))
    add(.microseconds, big32(UInt32(truncatingIfNeeded: message.at % 1_000_000)))
    add(.protocolType, [1])
    add(.captureID, big32(captureID))
    if !key.isEmpty { add(.key, key) }
    if let callID = message.callID { add(.correlation, Array(callID.utf8)) }
    add(.payload, payload)
    let length = big16(UInt16(clamping: out.count))
    out[4] = length[0]
    out[5] = length[1]
    return out
  }

  private static func big16(_ value: UInt16) -> [UInt8] { [UInt8(value >> 8), UInt8(truncatingIfNeeded: value)] }
  private static func big32(_ value: UInt32) -> [UInt8] {
    big16(UInt16(value >> 16)) + big16(UInt16(truncatingIfNeeded: value))
  }
}
