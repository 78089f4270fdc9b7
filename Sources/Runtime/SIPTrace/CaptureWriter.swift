import TrunklineBytes

/// Writes pcapng (draft-ietf-opsawg-pcapng): a section header, one interface of raw IP packets (LINKTYPE_RAW), enhanced packet
/// blocks with microseconds and comments, and interface statistics at the end. IP, UDP and TCP headers are made here from the
/// addresses that the transport used; checksums are right, TCP sequence numbers count the bytes of each direction.
///
/// Pure: appends to `output`, which the owner reads and empties.
struct CaptureWriter {
  private(set) var output: [UInt8] = []
  /// Packets written.
  private(set) var packets: UInt64 = 0
  /// Next sequence number of each direction of each connection.
  private var sequences: [Way: UInt32] = [:]
  private var identification: UInt16 = 0

  private struct Way: Hashable {
    var from: SocketAddress
    var to: SocketAddress
  }
  private enum Block: UInt32 {
    case interface = 1
    case statistics = 5
    case packet = 6
    case section = 0x0A0D_0D0A
  }
  private enum Option {
    static let comment: UInt16 = 1
    static let name: UInt16 = 2
    static let application: UInt16 = 4
    static let received: UInt16 = 4
    static let dropped: UInt16 = 5
  }

  init(application: String, name: String) {
    var section: [UInt8] = []
    section.append32(0x1A2B_3C4D)
    section.append16(1)
    section.append16(0)
    section.append64(UInt64.max)  // length not given
    section.appendOption(Option.application, Array(application.utf8))
    section.append32(0)
    block(.section, section)
    var interface: [UInt8] = []
    interface.append16(101)  // LINKTYPE_RAW
    interface.append16(0)
    interface.append32(0)  // no limit of a packet's length
    interface.appendOption(Option.name, Array(name.utf8))
    interface.append32(0)
    block(.interface, interface)
  }

  mutating func drain() -> [UInt8] {
    defer { output.removeAll() }
    return output
  }

  /// Writes one message, whose secrets are masked already. Over TCP and TLS it is a stream's bytes; a long one needs several
  /// packets.
  mutating func message(_ message: TracedMessage, comment: String) {
    var rest = message.bytes[...]
    repeat {
      let part = rest.prefix(Limits.segmentBytes)
      rest = rest.dropFirst(part.count)
      packet(ip(message, part), at: message.at, comment: comment)
    } while !rest.isEmpty
  }

  /// Writes the last block: the number of messages seen and dropped, and why the capture ends.
  mutating func finish(at: Int64, received: UInt64, dropped: UInt64, comment: String) {
    var body: [UInt8] = []
    body.append32(0)
    body.append32(UInt32(truncatingIfNeeded: at >> 32))
    body.append32(UInt32(truncatingIfNeeded: at))
    body.appendOption(Option.comment, Array(comment.utf8))
    for (code, value) in [(Option.received, received), (Option.dropped, dropped)] {
      var bytes: [UInt8] = []
      bytes.append64(value)
      body.appendOption(code, bytes)
    }
    body.append32(0)
    block(.statistics, body)
  }

  // MARK: blocks

  private mutating func block(_ type: Block, _ body: [UInt8]) {
    let length = UInt32(body.count + 12)
    output.append32(type.rawValue)
    output.append32(length)
    output += body
    output.append32(length)
  }

  private mutating func packet(_ bytes: [UInt8], at: Int64, comment: String) {
    var body: [UInt8] = []
    body.reserveCapacity(bytes.count + comment.utf8.count + 48)
    body.append32(0)
    body.append32(UInt32(truncatingIfNeeded: at >> 32))
    body.append32(UInt32(truncatingIfNeeded: at))
    body.append32(UInt32(bytes.count))
    body.append32(UInt32(bytes.count))
    body += bytes
    body.pad()
    body.appendOption(Option.comment, Array(comment.utf8))
    body.append32(0)
    block(.packet, body)
    packets += 1
  }

  // MARK: headers

  private mutating func ip(_ message: TracedMessage, _ payload: ArraySlice<UInt8>) -> [UInt8] {
    let (source, destination) = (message.source, message.destination)
    let isStream = message.flow.transport.isReliable
    let transport = isStream ? tcp(from: source, to: destination, payload) : udp(from: source, to: destination, payload)
    var out: [UInt8] = []
    let from = source.ip.unmapped.bytes, to = destination.ip.unmapped.bytes
    if from.count == 4, to.count == 4 {
      identification &+= 1
      out += [0x45, 0]
      out.appendBig16(UInt16(truncatingIfNeeded: 20 + transport.count))
      out.appendBig16(identification)
      out += [0x40, 0, 64, isStream ? 6 : 17, 0, 0]
      out += from
      out += to
      let sum = Self.checksum(out[...], 0)
      out[10] = UInt8(sum >> 8)
      out[11] = UInt8(sum & 0xFF)
    } else {
      out += [0x60, 0, 0, 0]
      out.appendBig16(UInt16(truncatingIfNeeded: transport.count))
      out += [isStream ? 6 : 17, 64]
      out += from.count == 16 ? from : Array(repeating: 0, count: 10) + [0xFF, 0xFF] + from
      out += to.count == 16 ? to : Array(repeating: 0, count: 10) + [0xFF, 0xFF] + to
    }
    return out + transport
  }

  private func udp(from source: SocketAddress, to destination: SocketAddress, _ payload: ArraySlice<UInt8>) -> [UInt8] {
    var out: [UInt8] = []
    out.appendBig16(source.port)
    out.appendBig16(destination.port)
    out.appendBig16(UInt16(truncatingIfNeeded: 8 + payload.count))
    out += [0, 0]
    out += payload
    let sum = Self.checksum(out[...], Self.pseudoHeader(from: source, to: destination, number: 17, count: out.count))
    out[6] = UInt8((sum == 0 ? 0xFFFF : sum) >> 8)
    out[7] = UInt8((sum == 0 ? 0xFFFF : sum) & 0xFF)
    return out
  }

  private mutating func tcp(from source: SocketAddress, to destination: SocketAddress, _ payload: ArraySlice<UInt8>) -> [UInt8] {
    let (way, back) = (Way(from: source, to: destination), Way(from: destination, to: source))
    if sequences.count > Limits.calls { sequences.removeAll() }
    let sequence = sequences[way] ?? 1
    sequences[way] = sequence &+ UInt32(payload.count)
    var out: [UInt8] = []
    out.appendBig16(source.port)
    out.appendBig16(destination.port)
    out.appendBig32(sequence)
    out.appendBig32(sequences[back] ?? 1)
    out += [0x50, 0x18, 0xFF, 0xFF, 0, 0, 0, 0]  // PSH and ACK
    out += payload
    let sum = Self.checksum(out[...], Self.pseudoHeader(from: source, to: destination, number: 6, count: out.count))
    out[16] = UInt8(sum >> 8)
    out[17] = UInt8(sum & 0xFF)
    return out
  }

  private static func pseudoHeader(from source: SocketAddress, to destination: SocketAddress, number: UInt8, count: Int) -> UInt32
  {
    var bytes = source.ip.unmapped.bytes + destination.ip.unmapped.bytes + [0, number]
    bytes.appendBig16(UInt16(truncatingIfNeeded: count))
    return sum(bytes[...])
  }

  private static func sum(_ bytes: ArraySlice<UInt8>) -> UInt32 {
    var total: UInt32 = 0
    var index = bytes.startIndex
    while index < bytes.endIndex {
      total &+= UInt32(bytes[index]) << 8
      if index + 1 < bytes.endIndex { total &+= UInt32(bytes[index + 1]) }
      index += 2
      total = (total & 0xFFFF) &+ (total >> 16)
    }
    return total
  }

  /// RFC 1071.
  private static func checksum(_ bytes: ArraySlice<UInt8>, _ initial: UInt32) -> UInt16 {
    var total = sum(bytes) &+ initial
    while total >> 16 != 0 { total = (total & 0xFFFF) &+ (total >> 16) }
    return ~UInt16(truncatingIfNeeded: total)
  }
}

extension [UInt8] {
  fileprivate mutating func append16(_ value: UInt16) {
    self += [UInt8(truncatingIfNeeded: value), UInt8(truncatingIfNeeded: value >> 8)]
  }
  fileprivate mutating func append32(_ value: UInt32) {
    append16(UInt16(truncatingIfNeeded: value))
    append16(UInt16(truncatingIfNeeded: value >> 16))
  }
  fileprivate mutating func append64(_ value: UInt64) {
    append32(UInt32(truncatingIfNeeded: value))
    append32(UInt32(truncatingIfNeeded: value >> 32))
  }
  fileprivate mutating func appendBig16(_ value: UInt16) {
    self += [UInt8(truncatingIfNeeded: value >> 8), UInt8(truncatingIfNeeded: value)]
  }
  fileprivate mutating func appendBig32(_ value: UInt32) {
    appendBig16(UInt16(truncatingIfNeeded: value >> 16))
    appendBig16(UInt16(truncatingIfNeeded: value))
  }
  fileprivate mutating func pad() { while count % 4 != 0 { append(0) } }
  fileprivate mutating func appendOption(_ code: UInt16, _ value: [UInt8]) {
    append16(code)
    append16(UInt16(truncatingIfNeeded: Swift.min(value.count, 65_535)))
    self += value.prefix(65_535)
    pad()
  }
}
