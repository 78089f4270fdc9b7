/// The checks of a peer's DTLS datagram before OpenSSL reads it, which gives a handshake up at the first record that does not fit
/// (RFC 6347 §4.1, §4.2.2). A few nanoseconds for each record, no allocation.
public struct HandshakeDatagram: Sendable {
  /// Every record in clear may be of the peer's role: handshake messages with fragments inside their message, and
  /// ChangeCipherSpec. A datagram with alerts in clear is not sound: anyone can write them.
  public private(set) var isSound = false
  /// The range of the 32 bytes of a ClientHello's random, if the datagram holds its beginning.
  public private(set) var helloRandom: Range<Int>?
  /// A record of type handshake (22) is under the negotiated keys: epoch 1.
  public private(set) var holdsFinished = false

  private static let (recordHeader, messageHeader) = (13, 12)

  private let isFromServer: Bool

  public init(_ bytes: UnsafeRawBufferPointer, isFromServer: Bool = false) {
    self.isFromServer = isFromServer
    func number(_ at: Int) -> Int { Int(bytes[at]) << 8 | Int(bytes[at + 1]) }
    var start = 0
    while start + Self.recordHeader <= bytes.count {
      let end = start + Self.recordHeader + number(start + 11)
      guard bytes[start + 1] == 0xfe, end <= bytes.count else { return }
      let (type, epoch) = (bytes[start], number(start + 3))
      if epoch == 0 {
        guard type == 20 || (type == 22 && append(bytes, (start + Self.recordHeader)..<end)) else { return }
      } else if epoch == 1, type == 22 {
        holdsFinished = true
      }
      start = end
    }
    isSound = start > 0 && start == bytes.count
  }

  /// ClientHello, Certificate, CertificateVerify, ClientKeyExchange, Finished; ServerHello, HelloVerifyRequest, NewSessionTicket,
  /// Certificate, ServerKeyExchange, CertificateRequest, ServerHelloDone, Finished.
  private func isOfRole(_ type: UInt8) -> Bool {
    switch type {
    case 11, 20: true
    case 1, 15, 16: !isFromServer
    case 2, 3, 4, 12, 13, 14: isFromServer
    default: false
    }
  }

  /// The messages of one record.
  private mutating func append(_ bytes: UnsafeRawBufferPointer, _ record: Range<Int>) -> Bool {
    func number(_ at: Int) -> Int { Int(bytes[at]) << 16 | Int(bytes[at + 1]) << 8 | Int(bytes[at + 2]) }
    var at = record.lowerBound
    while at < record.upperBound {
      guard at + Self.messageHeader <= record.upperBound else { return false }
      let (type, length, offset, fragment) = (bytes[at], number(at + 1), number(at + 6), number(at + 9))
      let body = at + Self.messageHeader
      guard isOfRole(type), length <= Limits.handshakeMessageBytes,
        offset + fragment <= length, body + fragment <= record.upperBound
      else { return false }
      if type == 1, offset == 0 {
        guard fragment >= 34, bytes[body] == 0xfe else { return false }
        helloRandom = (body + 2)..<(body + 34)
      }
      at = body + fragment
    }
    return !record.isEmpty
  }
}
