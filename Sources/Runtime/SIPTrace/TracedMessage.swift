import TrunklineBytes
import TrunklineSIPDialogs

/// One message as the transport sent or received it, without TLS.
struct TracedMessage: Sendable {
  var bytes: [UInt8]
  var flow: Flow
  var isOurs: Bool
  var trunk: String
  /// Microseconds since 1970.
  var at: Int64

  var source: SocketAddress { isOurs ? flow.local : flow.remote }
  var destination: SocketAddress { isOurs ? flow.remote : flow.local }

  /// The value of Call-ID, found without parsing: malformed messages have one too.
  var callID: String? {
    bytes.withUnsafeBufferPointer { bytes in
      var line = 0
      while line < bytes.count, let end = bytes[line...].firstIndex(of: 10) {
        if let value = Self.callID(bytes[line..<end]) { return value }
        if end - line <= 1 { return nil }  // end of the head
        line = end + 1
      }
      return nil
    }
  }

  private static func callID(_ line: Slice<UnsafeBufferPointer<UInt8>>) -> String? {
    guard let first = line.first, first | 0x20 == UInt8(ascii: "c") || first | 0x20 == UInt8(ascii: "i"),
      let colon = line.prefix(16).firstIndex(of: UInt8(ascii: ":"))
    else { return nil }
    let name = String(decoding: line[line.startIndex..<colon], as: UTF8.self).lowercased().filter { $0 != " " && $0 != "\t" }
    guard name == "call-id" || name == "i" else { return nil }
    var value = line[(colon + 1)...].drop { $0 == 32 || $0 == 9 }
    while let last = value.last, last == 13 || last == 32 || last == 9 { value = value.dropLast() }
    return value.count <= Limits.callIDBytes ? String(decoding: value, as: UTF8.self) : nil
  }
}
